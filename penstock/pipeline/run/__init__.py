"""Running a pipeline on Spark."""
