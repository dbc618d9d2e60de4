"""Reading a pipeline file, and finding what is wrong with it."""
