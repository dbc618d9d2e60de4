"""Pipelines from a file: streams through Spark SQL to tables and other streams.

``python -m penstock_pipeline run FILE.toml`` runs one; docs/pipeline.md describes the file and the
commands. Modules are imported when a command needs them: a file is checked without starting Spark.
"""
