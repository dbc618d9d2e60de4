"""Users, their rules, the file that holds them, and the log of denials."""
