"""Runs the suite and prints the table; see README.md."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
