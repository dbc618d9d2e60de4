"""Random histories of a pipeline with many sinks: kills, losses, rivals, and what is left.

``python -m pipeline_tests.histories --mode group --seconds 600 --seed 7`` runs one; the modules are
``model`` (which entries there were, and what each table has to hold), ``plan`` (the pipeline's file
and its tables), ``world`` (processes), ``disturbances``, and ``history`` (one after another).
"""
