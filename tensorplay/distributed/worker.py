"""A process that measures signatures for its parent: `python -m tensorplay.distributed.worker DEVICE KILLERS FD`.

It reads requests from standard input and answers on the open descriptor FD. Settings come from the environment, as in
any process.
"""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import IO, Any

from tensorplay.backends.base import Backend
from tensorplay.backends.registry import backend_of
from tensorplay.database.killers import KillerLog
from tensorplay.distributed.guarded_backend import GuardedBackend
from tensorplay.distributed.message import DONE, LOST, TRY, decode_request, encode
from tensorplay.errors import SignatureError
from tensorplay.gemm import Signature, parse_signature
from tensorplay.runtime.context import TuningContext

__all__ = ["LOST_EXIT", "main", "serve"]

LOST_EXIT = 70
"""Exit code of a worker whose device runs nothing any more."""


def serve(
    device: str, killers: str, requests: IO[bytes], answers: IO[bytes], *, find: Callable[[str], Backend] = backend_of
) -> None:
    """Answer requests until there are no more.

    Parameters
    ----------
    device : str
        What the signatures are measured on.
    killers : str
        File of the kernels that are left out.
    requests, answers : file
        Lines as `message` has them.
    find : callable
        Returns the backend of a device.
    """

    def say(**fields: object) -> None:
        answers.write(encode(**fields))
        answers.flush()

    def lost(kernel: str, error: Exception) -> None:
        say(event=LOST, kernel=kernel, reason=str(error))
        # Not by an exception: that would reach the tuner, which would record what it believes to be a result.
        os._exit(LOST_EXIT)

    backend = GuardedBackend(
        find(device),
        killers=frozenset((killer.signature, killer.kernel) for killer in KillerLog(killers).read()),
        announce=lambda kernel: say(event=TRY, kernel=kernel),
        lost=lost,
    )
    context = TuningContext(backends={device: backend})
    context.enable()
    context.tuning_enable()
    # Whoever asks here waits for the answer.
    context.change_setting("mode", "blocking")
    for line in requests:
        signature, again = decode_request(line)
        say(event=DONE, **_answer(context, backend, signature, again=again))
    context.close()


def _answer(context: TuningContext, backend: Backend, signature: Signature, *, again: bool) -> dict[str, Any]:
    """Measure one signature, and return what a person wants to know of it."""
    try:
        problem = parse_signature(*signature)
    except SignatureError as error:
        return {"problem": str(error)}
    families = next(state.value for state in context.settings() if state.name == "families")
    if not backend.is_tunable(problem, str(families)):
        return {"problem": f"is not of the tunable family with FAMILIES={families}"}
    if again:
        context.forget(*signature)
    before = context.stats().get("measured", 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        context.resolve(problem, backend)
    told = context.explain(*signature)
    return {
        "kernel": told["kernel"],
        "time_ms": told["time_ms"],
        "verdict": told["verdict"],
        "first_choice_ms": told.get("first_choice_ms"),
        "candidates": len(told["candidates"]) if isinstance(told["candidates"], (list, tuple)) else None,
        "measured": context.stats().get("measured", 0) > before,
        "problem": told["not_measured"],
        "warnings": [str(each.message) for each in caught],
    }


def main(arguments: Sequence[str] | None = None, *, find: Callable[[str], Backend] = backend_of) -> int:
    """Serve standard input; return the exit code."""
    device, killers, descriptor = sys.argv[1:] if arguments is None else arguments
    with os.fdopen(int(descriptor), "wb") as answers:
        serve(device, killers, sys.stdin.buffer, answers, find=find)
    return 0


if __name__ == "__main__":
    sys.exit(main())
