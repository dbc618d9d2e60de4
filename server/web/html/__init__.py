"""Pages for browsers: what the page of the server is made of."""
