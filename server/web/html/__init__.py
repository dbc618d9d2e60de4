"""Pages for browsers: what the page of the server and that of a pipeline's run are made of."""
