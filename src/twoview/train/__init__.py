"""From a recipe and a log to a run folder."""
