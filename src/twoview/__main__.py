"""`python -m twoview` is the command line."""

from .cli import main

main()
