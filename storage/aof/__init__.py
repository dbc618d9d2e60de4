"""The append-only file: what is in it, in which files it lies, and how it is written and read."""
