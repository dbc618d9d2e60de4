"""Streams: adding, reading, trimming, describing."""
