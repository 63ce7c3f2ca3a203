"""The command line as `python -m tensorplay`."""

from tensorplay.cli.main import main

main(prog_name="python -m tensorplay")
