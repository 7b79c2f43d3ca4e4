"""`python -m labelonce` is the command `labelonce`; `torchrun -m labelonce` needs it."""

from labelonce.cli import main

main()
