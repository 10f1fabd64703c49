"""``python -m paramagnet`` is the command line."""

from paramagnet.cli import main

main()
