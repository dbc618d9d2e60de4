"""Keys of every type: deletion, expiry, scanning, dumping."""
