"""Users: their passwords, and what each of them may do."""
