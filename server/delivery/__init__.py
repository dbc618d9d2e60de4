"""What policies make of deliveries: dead letters, retries, order, retention (docs/delivery.md)."""
