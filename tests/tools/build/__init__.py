"""Tests of how modules are compiled, and of what is kept of that."""
