from tests.fewer_calls import called_at_few_sizes  # noqa: F401 (for every module here)
