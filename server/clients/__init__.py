"""Hold what clients share: waiting, watching, subscribing, and what follows from effects."""
