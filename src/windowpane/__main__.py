"""`python -m windowpane` is the command `windowpane`."""

from windowpane.cli import main

main()
