"""Commands beside Spark: archive, replay, redrive."""
