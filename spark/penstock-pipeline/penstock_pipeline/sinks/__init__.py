"""Where rows go: one class for each kind of sink."""
