"""Show commands to an operator: how long they take, which are slow, and each as it runs."""
