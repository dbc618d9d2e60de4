"""Commands for lists."""
