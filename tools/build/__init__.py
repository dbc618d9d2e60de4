"""What ``setup.py`` builds with: how modules are compiled, and where the result is kept."""
