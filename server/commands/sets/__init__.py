"""Commands for sets."""
