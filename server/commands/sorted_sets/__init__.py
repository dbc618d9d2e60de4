"""Commands for sorted sets."""
