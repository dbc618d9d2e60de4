"""Penstock's front door: the command line, import and export, pipelines, and the pytest plugin."""
