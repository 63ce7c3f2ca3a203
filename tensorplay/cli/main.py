"""Where the command `tensorplay` starts: its commands, whose import may be interrupted like all else that they do."""

import sys

from tensorplay.cli.exit_code import INTERRUPTED

try:
    from tensorplay.cli.commands import main
except KeyboardInterrupt:
    # Whatever was being imported, nobody is there yet who would end the process.
    sys.stderr.write("interrupted\n")
    sys.exit(INTERRUPTED)

__all__ = ["main"]
