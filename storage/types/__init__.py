"""Hold what else a key may have as its value."""
