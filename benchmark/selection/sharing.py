"""A run's items shared among several devices, each with a process that sees that one only."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Share", "devices_of", "parse_share", "run_shares", "share_folders"]

_SHARE = re.compile(r"(\d{1,3})/(\d{1,3})")


class Share(NamedTuple):
    """Every `of_all`-th item, from that of the number on."""

    number: int
    of_all: int

    def of(self, items: Sequence[str]) -> list[str]:
        """Return the share's items, in order."""
        return list(items[self.number :: self.of_all])


def parse_share(text: str) -> Share:
    """Return the share that `NUMBER/COUNT` means, numbers from 0 on; ValueError for others."""
    match = _SHARE.fullmatch(text)
    if match is None or not int(match[1]) < int(match[2]):
        raise ValueError(f"{text!r} is no share; allowed: NUMBER/COUNT, such as 0/2 and 1/2")
    return Share(int(match[1]), int(match[2]))


def devices_of(count: int, environ: Mapping[str, str]) -> list[str]:
    """Return the first so many of the devices that a process sees, as CUDA_VISIBLE_DEVICES names them."""
    named = [each.strip() for each in environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each.strip()]
    if named and len(named) < count:
        raise ValueError(f"--gpus {count}: CUDA_VISIBLE_DEVICES names {len(named)}")
    return named[:count] or [str(number) for number in range(count)]


def share_folders(folder: Path, count: int) -> list[Path]:
    """Return the folders below one that so many shares have, in the order of the devices."""
    return [folder / f"gpu{number}" for number in range(count)]


def run_shares(command: Sequence[str], count: int, results: Path, work: Path) -> list[int]:
    """Run the command once a device, all at once, with a share, a folder of results and one of work each.

    Returns
    -------
    list of int
        The exit statuses, in the order of the devices.
    """
    running = []
    folders_of = zip(share_folders(results, count), share_folders(work, count), strict=True)
    for number, (device, places) in enumerate(zip(devices_of(count, os.environ), folders_of, strict=True)):
        ours = ("--gpus", "1", "--share", f"{number}/{count}")
        folders = ("--results", str(places[0]), "--work", str(places[1]))
        environ = os.environ | {"CUDA_VISIBLE_DEVICES": device}
        # What each has is put together afterwards; what it says of its share alone would only confuse.
        running.append(subprocess.Popen((*command, *ours, *folders), env=environ, stdout=subprocess.DEVNULL))
    statuses = [process.wait() for process in running]
    for number, status in enumerate(statuses):
        if status not in {0, 3}:
            sys.stderr.write(f"the share of device {number} ended with status {status}\n")
    return statuses
