"""From a model and a schedule to a template file."""
