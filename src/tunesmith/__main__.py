"""`python -m tunesmith` is the command line."""

from tunesmith.cli.app import main

main()
