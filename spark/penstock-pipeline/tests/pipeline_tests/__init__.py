"""Pipelines from a file: the file itself, what Spark makes of it, and the tools beside it."""
