"""What of pipelines works without Spark: it is tested by ``make test``."""
