"""Answer over HTTP: metrics, and whether it is well."""
