"""Faults on demand: what a test lets happen to the commands of its clients (DEBUG FAULT)."""
