"""The command line: one command in each file, `tensorplay.cli.main` holds them together."""
