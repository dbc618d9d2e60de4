"""Strings, counters and bits."""
