"""`python -m tunesmith` is the command line."""

from tunesmith.cli import main

main()
