"""The server as a whole: INFO, CONFIG, COMMAND, MEMORY, persistence."""
