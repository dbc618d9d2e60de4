"""Mutation testing: change the product in one place, and see whether a test fails."""
