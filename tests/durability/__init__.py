"""What the append-only file promises, tried with kills, lost power and disks that fail."""
