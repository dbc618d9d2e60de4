"""What is tried with random input, a module each."""
