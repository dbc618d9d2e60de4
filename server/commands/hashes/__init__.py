"""Commands for hashes."""
