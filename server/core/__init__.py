"""What everybody may know of a command: its description, what it returns, why it may not run."""
