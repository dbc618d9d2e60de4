"""What the servers of a pipeline say, without Spark: whether they can be used, and streams."""
