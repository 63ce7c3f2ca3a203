#!/usr/bin/env python3
"""Draw what `tensorplay` prints on a terminal, as SVG files in docs/images.

Runs the commands on a terminal of its own, in an empty folder, and draws what they wrote: figures are this machine's.
Takes a minute. The terminal is Linux's.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"

COLUMNS = 150
# Four of the demo's kinds of shape, each mode in one process: nine in three processes are too tall for a picture.
SHAPES = ("float32:16x64x16", "float32:1x1024x1024:T", "float32:8x2048x512:T", "float64:256x256x256")
BENCH = ("bench", "--repeats", "1", *(word for shape in SHAPES for word in ("--shape", shape)))
SHOW = ("show", "tunableop_resultscpu.csv", "--sort", "speed", "--reverse")

# As rich's own, but without its web fonts: nothing is fetched to show a picture. And without its clips, of which that
# of the whole terminal ends above the underscores of the last line.
SVG_FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
  <style>
    .{unique_id}-matrix {{
      font: {char_height}px/{line_height}px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
    }}
    .{unique_id}-title {{ font: bold 18px ui-sans-serif, system-ui, Helvetica, Arial, sans-serif; }}
    {styles}
  </style>
  {chrome}
  <g transform="translate({terminal_x}, {terminal_y})">
    {backgrounds}
    <g class="{unique_id}-matrix" xml:space="preserve">
    {matrix}
    </g>
  </g>
</svg>
"""

_CLIP = re.compile(r' clip-path="[^"]*"')


def main() -> None:
    """Draw every picture."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for words in (BENCH, SHOW):
            screen = on_terminal(words, Path(folder))
            # Whoever looks at the picture has another folder.
            draw(screen.replace(os.path.realpath(folder), "~/project"), words)


def on_terminal(words: Sequence[str], folder: Path) -> str:
    """Return what the command writes to standard output when that is a terminal."""
    ours, theirs = pty.openpty()
    environ = os.environ | {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "tensorplay", *words]
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    screen = b"".join(_written(ours))
    os.close(ours)
    if process.wait() != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{screen.decode()}")
    return screen.decode().replace("\r\n", "\n")


def _written(terminal: int) -> list[bytes]:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            # Linux's word for a terminal whose other side is closed.
            return parts
        if not part:
            return parts
        parts.append(part)


def draw(screen: str, words: Sequence[str]) -> None:
    """Write a picture of the screen, named after the command."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        text = Text.from_ansi(screen.rstrip())
        width = max(map(len, text.plain.splitlines()))
        console = Console(record=True, width=width, file=nowhere, force_terminal=True, highlight=False)
        console.print(text)
        name = words[0]
        drawn = console.export_svg(title=f"tensorplay {name}", code_format=SVG_FORMAT, unique_id=f"tensorplay-{name}")
    (IMAGES / f"{name}.svg").write_text(_CLIP.sub("", drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
