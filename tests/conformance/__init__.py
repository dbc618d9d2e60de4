"""Conformance: scripted conversations, compared byte for byte with a recorded Redis."""
