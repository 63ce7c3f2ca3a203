"""A process that measures signatures for its parent: `python -m tensorplay.distributed.worker DEVICE RESULTS FD`.

It reads requests from standard input and answers on the open descriptor FD. Winners go to the file RESULTS, whose
killers are left out. All other settings come from the environment, as in any process.
"""

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, NoReturn

from tensorplay.backends.base import Backend
from tensorplay.backends.registry import backend_of
from tensorplay.database.killers import KillerLog, killers_name
from tensorplay.distributed.guarded_backend import GuardedBackend
from tensorplay.distributed.message import DONE, LOST, MET, NOTHING, TRY, Request, Running, decode_request, encode
from tensorplay.distributed.remeasuring import RemeasuringContext
from tensorplay.errors import SignatureError, TensorPlayError
from tensorplay.gemm import GemmProblem, parse_signature

__all__ = ["LOST_EXIT", "main", "serve"]

LOST_EXIT = 70
"""Exit code of a worker whose device runs nothing any more."""


def serve(
    device: str, results: str, requests: IO[bytes], answers: IO[bytes], *, find: Callable[[str], Backend] = backend_of
) -> None:
    """Answer requests until there are no more.

    Parameters
    ----------
    device : str
        What the signatures are measured on.
    results : str
        The very file that winners go to; no ordinal is inserted. The killers beside it are left out.
    requests, answers : file
        Lines as `message` has them.
    find : callable
        Returns the backend of a device.
    """

    def say(**fields: object) -> None:
        answers.write(encode(**fields))
        answers.flush()

    def lost(running: Running, error: Exception) -> NoReturn:
        reason = str(error) if isinstance(error, TensorPlayError) else f"{type(error).__name__}: {error}"
        say(event=LOST, reason=reason, **running._asdict())
        # Not by an exception: that would reach the tuner, which would record what it believes to be a result.
        os._exit(LOST_EXIT)

    killers = KillerLog(killers_name(results)).read()
    backend = GuardedBackend(
        find(device),
        killers=frozenset((killer.signature, killer.kernel) for killer in killers),
        announce=lambda running: say(event=TRY, **running._asdict()),
        lost=lost,
    )
    context = RemeasuringContext(backends={device: backend})
    context.set_filename(results)
    context.enable()
    context.tuning_enable()
    # Whoever asks here waits for the answer.
    context.change_setting("mode", "blocking")
    for line in requests:
        request = decode_request(line)
        try:
            answer = _answer(context, backend, request, met=lambda recorded: say(event=MET, **recorded))
        except Exception as error:  # noqa: BLE001 - by the end of a process, the last kernel would be blamed for it
            lost(NOTHING, error)
        say(event=DONE, **answer)
    context.close()


def _answer(
    context: RemeasuringContext,
    backend: GuardedBackend,
    request: Request,
    *,
    met: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Measure one signature, and return what a person wants to know of it; `met` hears what is to be replaced."""
    try:
        problem = parse_signature(*request.signature)
    except SignatureError as error:
        return {"problem": str(error)}
    settings = {state.name: state.value for state in context.settings()}
    backend.prepare(request, deterministic=bool(settings["deterministic"]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if request.again:
            entry = context.winner_of(problem, backend)
            is_out = entry is None or backend.is_killer(problem, entry.kernel)
            met({"kernel": None} if is_out else _recorded(context.explain(*request.signature)))
        if backend.is_tunable(problem, str(settings["families"])):
            answer = _measured(context, backend, problem, request)
        else:
            answer = {"problem": f"is not of the tunable family with FAMILIES={settings['families']}"}
    return answer | {"warnings": [str(each.message) for each in caught]}


def _measured(
    context: RemeasuringContext, backend: GuardedBackend, problem: GemmProblem, request: Request
) -> dict[str, Any]:
    count, undecided = context.stats().get("measured", 0), None
    if request.again:
        undecided = context.measure_again(problem, backend)
    else:
        context.resolve(problem, backend)
    told = context.explain(*request.signature)
    is_new = context.stats().get("measured", 0) > count
    unwritten = context.why_unwritten(problem, backend) if is_new and undecided is None else None
    return {
        **_recorded(told),
        "candidates": len(told["candidates"]) if isinstance(told["candidates"], (list, tuple)) else None,
        "measured": is_new or undecided is not None,
        "undecided": undecided,
        "problem": told["not_measured"] if unwritten is None else f"measured, not written: {unwritten}",
    }


def _recorded(told: Mapping[str, object]) -> dict[str, Any]:
    """Return what is recorded for a signature, and why, of what a context tells of it."""
    return {name: told.get(name) for name in ("kernel", "time_ms", "verdict", "first_choice_ms")}


def main(arguments: Sequence[str] | None = None, *, find: Callable[[str], Backend] = backend_of) -> int:
    """Serve standard input; return the exit code."""
    device, results, descriptor = sys.argv[1:] if arguments is None else arguments
    with os.fdopen(int(descriptor), "wb") as answers:
        serve(device, results, sys.stdin.buffer, answers, find=find)
    return 0


if __name__ == "__main__":
    sys.exit(main())
