"""What a tuning worker and its parent say to each other: one JSON object a line.

The parent asks with a `Request`. The worker answers with any number of `try`, each naming what it is about to run, and
then with `done`, or with `lost` before it ends itself. Before what is measured again, `met` says what is recorded.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorplay.gemm import Signature

__all__ = [
    "DONE",
    "LOST",
    "MET",
    "NOTHING",
    "TRY",
    "Request",
    "Running",
    "decode",
    "decode_request",
    "decode_running",
    "encode",
    "encode_request",
]

MET, TRY, DONE, LOST = "met", "try", "done", "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a worker is asked to measure.

    Attributes
    ----------
    signature : Signature
        Op and params.
    again : bool
        Whether a recorded winner is measured again.
    apart : bool
        Whether kernels are sampled one at a time, so that whoever watches can tell which of them ended the process.
    killers : tuple of str
        Kernels that are left out, beside those in the file of killers.
    """

    signature: Signature
    again: bool = False
    apart: bool = False
    killers: tuple[str, ...] = ()


class Running(NamedTuple):
    """The kernels of one call, and which of them took the process down if it ends in that call.

    Attributes
    ----------
    kernels : tuple of str
        In the order they run; empty where none runs.
    culprit : str or None
        None where several may have done it, and for the first choice: nothing can take its place.
    """

    kernels: tuple[str, ...] = ()
    culprit: str | None = None


NOTHING = Running()
"""No kernel runs."""


def encode(**fields: object) -> bytes:
    """Return one line."""
    return json.dumps(fields, allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Return what a line says; `ValueError` when it is no object."""
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"{line[:80]!r} is no message")  # noqa: TRY004 - of what is not JSON at all, json says the same
    return message


def encode_request(request: Request) -> bytes:
    """Return the line of a request."""
    op, params = request.signature
    return encode(op=op, params=params, again=request.again, apart=request.apart, killers=request.killers)


def decode_request(line: bytes) -> Request:
    """Return the request of a line."""
    message = decode(line)
    return Request(
        signature=Signature(str(message["op"]), str(message["params"])),
        again=bool(message.get("again")),
        apart=bool(message.get("apart")),
        killers=tuple(map(str, message.get("killers", ()))),
    )


def decode_running(message: dict[str, Any]) -> Running:
    """Return what a `try` or a `lost` names."""
    culprit = message["culprit"]
    return Running(tuple(map(str, message["kernels"])), None if culprit is None else str(culprit))
