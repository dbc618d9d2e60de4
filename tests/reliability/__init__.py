"""What one client or one accident can do to the others: attacks, tried on real processes."""
