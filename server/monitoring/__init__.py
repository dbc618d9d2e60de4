"""What an operator sees of commands: how long they take, which are slow, and each as it runs."""
