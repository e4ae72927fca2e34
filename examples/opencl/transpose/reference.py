"""The expected result of transpose."""


def transpose(input):
    return input.T
