"""From a repository, or from what a program launched, to a problem folder that stands alone."""
