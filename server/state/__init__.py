"""What is true of a server and of its clients at this moment, and how long their commands took."""
