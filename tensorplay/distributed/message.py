"""What a tuning worker and its parent say to each other: one JSON object a line.

The parent asks with a signature. The worker answers with any number of `try`, each naming the kernel that it is about
to run, and then with `done`, or with `lost` before it ends itself.
"""

import json
from typing import Any

from tensorplay.gemm import Signature

__all__ = ["DONE", "LOST", "TRY", "decode", "decode_request", "encode"]

TRY, DONE, LOST = "try", "done", "lost"


def encode(**fields: object) -> bytes:
    """Return one line."""
    return json.dumps(fields, allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Return what a line says; `ValueError` when it is no object."""
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"{line[:80]!r} is no message")  # noqa: TRY004 - of what is not JSON at all, json says the same
    return message


def decode_request(line: bytes) -> tuple[Signature, bool]:
    """Return the signature that is asked for, and whether a recorded winner is measured again."""
    message = decode(line)
    return Signature(str(message["op"]), str(message["params"])), bool(message.get("again"))
