"""Writes rows as entries."""
