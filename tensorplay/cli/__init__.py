"""The command line: one command in each file, `tensorplay.cli.commands` holds them together."""
