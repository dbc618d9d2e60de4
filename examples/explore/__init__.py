"""Workers of libraries and well-known patterns, each explored: ``make explore``."""
