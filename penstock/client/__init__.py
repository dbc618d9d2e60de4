"""Connections to servers, for migration and for who operates one: URLs, commands, errors."""
