"""What the images run: a small network over and over, with the dashboard on. Put a program of your own in its place.

The environment decides what is tuned, and where winners go, as for every program. Ends with SIGTERM or Ctrl-C.
"""

import argparse
import itertools
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorplay
from tensorplay.errors import SettingError
from tensorplay.service import start
from tensorplay.service.host_names import hosts_of

SIZES = (784, 512, 512, 10)
BATCHES = (1, 16, 64)
EVERY = "0.0.0.0"  # noqa: S104 - what a link must not say

Placed = Callable[[Any], Any]


def options() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description="Multiply for ever, with the dashboard on.")
    parser.add_argument("--host", default="127.0.0.1", help="any other address needs TENSORPLAY_TOKEN")
    parser.add_argument("--port", type=int, default=8787)
    parser.add_argument(
        "--name", action="append", default=[], help="a name that it is reached by too; unless given TENSORPLAY_HOSTS"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--pause", type=float, default=0.05, metavar="SECONDS", help="between two batches")
    return parser.parse_args()


def placed_on(device: str) -> Placed:
    """Return what puts an array where it is multiplied."""
    if device == "cpu":
        return lambda array: array
    from tensorplay.cuda import asarray  # noqa: PLC0415 - needs a GPU

    return asarray


def work(place: Placed, ended: threading.Event, pause: float) -> None:
    """Run batch after batch through the layers until it is ended."""
    draw = np.random.default_rng(0)
    batches = [place(draw.random((rows, SIZES[0]), dtype=np.float32)) for rows in BATCHES]
    layers = [
        (place(draw.random((wide, narrow), dtype=np.float32) / narrow), place(np.zeros(wide, np.float32)))
        for narrow, wide in itertools.pairwise(SIZES)
    ]
    for x in itertools.cycle(batches):
        for weight, bias in layers:
            x = tensorplay.linear(x, weight, bias)  # noqa: PLW2901 - goes through the layers
        if ended.wait(pause):
            return


def main() -> None:
    """Serve the dashboard and multiply."""
    wanted = options()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    token = os.environ.get("TENSORPLAY_TOKEN") or None
    try:
        hosts = frozenset(wanted.name) or hosts_of(os.environ)
    except SettingError as error:
        raise SystemExit(str(error)) from None
    try:
        service = start(wanted.host, wanted.port, token=token, hosts=hosts)
    except SettingError as error:
        raise SystemExit(f"{error}; the token is read from TENSORPLAY_TOKEN") from None
    with service:
        # Nobody can go to "every address"; a link that works once may stand in a log, a token must not.
        link = service.login_url.replace(f"//{EVERY}:", "//127.0.0.1:")
        print(f"the dashboard; this link lets one browser in: {link}", flush=True)
        work(placed_on(wanted.device), ended, wanted.pause)


if __name__ == "__main__":
    main()
