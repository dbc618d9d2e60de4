"""DEBUG: faults, clocks and snapshots for tests."""
