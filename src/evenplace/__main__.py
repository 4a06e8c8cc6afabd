"""`python -m evenplace`, and so `torchrun … -m evenplace train`, is the command line."""

from evenplace.cli import main

main()
