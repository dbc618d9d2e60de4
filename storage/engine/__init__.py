"""What a stream is: its log of entries, consumer groups and pending entries."""
