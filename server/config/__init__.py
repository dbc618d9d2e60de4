"""The settings: their types, their registry, and the configuration file."""
