"""What the server says over HTTP: metrics, and whether it is well."""
