"""`python -m tunesmith` is the command line."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current folder, which holds no module of ours

from tunesmith.cli.app import main

main()
