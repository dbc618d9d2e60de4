"""Histories of a primary with real replicas: random load, faults, comparisons and a promotion."""
