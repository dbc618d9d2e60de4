"""Sample entries of a pipeline, and the tables that it makes of them: ``preview`` and ``test``."""
