"""Decoding the values of fields: pure functions from bytes to values, which need no Spark."""
