"""`python -m dynident`: the command line."""

import sys

from dynident.cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
