"""Searchers side by side on recorded spaces: how close to the optimum after so many evaluations."""
