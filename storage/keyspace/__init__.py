"""Who holds what: databases, expiry, the index of SCAN, patterns, copies."""
