"""Searchers, one a file. Pure: what they ask for depends on the view and its seed alone."""
