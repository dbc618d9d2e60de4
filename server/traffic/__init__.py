"""What all connections share: turns, limits and holding back of output, TLS."""
