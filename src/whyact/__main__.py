"""`python -m whyact` is the command line too."""

from whyact.cli import main

main()
