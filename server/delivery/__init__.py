"""Groups and their policies: retries, order, dead letters, retention (docs/delivery.md)."""
