"""Times the first call and the steady state of the seed's five shapes on a GPU, each in fresh processes.

Per shape and repeat there are four processes, which have multiplied another shape before, so that starting CUDA and
loading the library are not in any figure:

- `bare`: cuBLASLt by nvmath's bindings: descriptors, the library's first answer, one product;
- `default`: `tensorplay` with the feature off, so that the library's candidates are timed in the process;
- `tuning`: the feature on, and no results file yet;
- `replay`: the feature on, with the file that `tuning` has written.

A first call ends when its product is done. All processes of a repeat import at once and then run one at a time; the
order of the modes is another in each repeat, but `replay` follows `tuning`. `bare` and `replay` run more often in each
repeat: loading the kernels of half precision takes 80 ms in one process and 125 ms in the next, whoever asks, so that
their ratio needs more of them than the others. What the processor did meanwhile is told beside it.
"""

import argparse
import hashlib
import random
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from harness.bare import first_call, handle_and_workspace
from harness.cuda_command import NO_DEVICE, finish, options_of, parser_of, say_no_device
from harness.cuda_shapes import PRIMING, SEED_SHAPES, CudaShape, product_of
from harness.cuda_timing import back_to_back_us
from harness.fresh import FreshProcessError
from harness.kernels_run import kernels_run
from harness.machine import metadata
from harness.prepared import PreparedProcess
from harness.result import Figure, Goal, Result, write
from harness.spread import spread_of

from tensorplay import tunable
from tensorplay.backends.cublaslt.library import cublaslt, driver
from tensorplay.measure.statistics import median

MODES = ("bare", "default", "tuning", "replay")
# What runs in a repeat, `replay` after the `tuning` that it replays: of single precision once, since there replay does
# without the 30 ms in which the library prepares its choice.
RUNS = {
    "float32": ("bare", "default", "tuning", "replay"),
    "float64": ("bare", "default", "tuning", "bare", "replay", "replay"),
    "float16": ("bare", "default", "tuning", "bare", "bare", "bare", "replay", "replay", "replay", "replay"),
}
FILENAME = "winners.csv"
SETTINGS: dict[str, dict[str, str]] = {
    "bare": {},
    "default": {},
    "tuning": {"ENABLED": "1", "FILENAME": FILENAME},
    "replay": {"ENABLED": "1", "FILENAME": FILENAME},
}
SECONDS = 420.0
_COMPARED = ("bare", "replay")
_SPENT = ("user_ms", "system_ms", "faults")
_TOLD = ("first_ms", *_SPENT)
Answers = dict[str, list[dict[str, Any]]]


def prepare() -> None:
    """Import what a process needs, without touching the device."""
    warnings.simplefilter("ignore")
    driver()
    cublaslt()


def first_and_steady(mode: str, shape: Sequence[Any], milliseconds: float) -> dict[str, Any]:
    """Multiply another shape, time the first call of this one, and then many more."""
    import torch

    wanted = CudaShape(*shape)
    call_of = _bare_calls() if mode == "bare" else lambda _shape, operands: product_of(operands)
    call_of(PRIMING, PRIMING.operands())()
    operands = wanted.operands()
    call = call_of(wanted, operands)
    torch.cuda.synchronize()
    before = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    first_ms = 1e3 * (time.perf_counter() - begin)
    answer: dict[str, Any] = {"first_ms": first_ms, "digest": _digest(operands.out), "kernel": "", "stats": {}}
    answer |= _spent_since(before)
    if mode != "bare":
        back_to_back_us(call, milliseconds=milliseconds / 4, blocks=1)
        answer["steady_us"] = median(back_to_back_us(call, milliseconds=milliseconds, blocks=7))
        answer |= _what_ran(wanted)
    return answer


def _bare_calls() -> Callable[[CudaShape, Any], Callable[[], object]]:
    handle, workspace = handle_and_workspace()
    return lambda shape, operands: first_call(shape, operands, handle, workspace)


def _what_ran(shape: CudaShape) -> dict[str, Any]:
    return {"kernel": " ".join(kernels_run(tunable.get_tuning_context(), shape)), "stats": tunable.stats()}


def _spent_since(before: resource.struct_rusage) -> dict[str, float]:
    """Return the processor's time in milliseconds, in the program and in the kernel, and the page faults."""
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "user_ms": 1e3 * (after.ru_utime - before.ru_utime),
        "system_ms": 1e3 * (after.ru_stime - before.ru_stime),
        "faults": after.ru_minflt - before.ru_minflt,
    }


def _digest(tensor: Any) -> str:
    import torch

    return hashlib.sha256(tensor.view(torch.uint8).cpu().numpy().tobytes()).hexdigest()


def one_repeat(shapes: Sequence[CudaShape], milliseconds: float, rng: random.Random) -> tuple[list[Answers], list[str]]:
    """Return what each process of each shape answered, by mode, and what went wrong."""
    answers: list[Answers] = [{mode: [] for mode in MODES} for _ in shapes]
    failures: list[str] = []
    with ExitStack() as stack:
        waiting = []
        for place, shape in enumerate(shapes):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            for mode in _order(RUNS[shape.dtype], rng):
                process = PreparedProcess(first_and_steady, directory=folder, settings=SETTINGS[mode])
                waiting.append((place, shape, mode, stack.enter_context(process)))
        for *_, process in waiting:
            _noting(failures, process.wait_until_ready)
        for place, shape, mode, process in waiting:
            call = partial(process.call, mode=mode, shape=shape, milliseconds=milliseconds)
            _noting(failures, call, answers[place][mode].append)
    return answers, failures


def _order(runs: Sequence[str], rng: random.Random) -> list[str]:
    order = rng.sample(runs, len(runs))
    tuning, replay = order.index("tuning"), order.index("replay")
    if replay < tuning:
        order[tuning], order[replay] = "replay", "tuning"
    return order


def _noting(
    failures: list[str], call: Callable[[], Any], keep: Callable[[dict[str, Any]], None] = lambda _answer: None
) -> None:
    try:
        keep(call())
    except (FreshProcessError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        failures.append(str(error).splitlines()[0])


def measure(options: argparse.Namespace) -> Result:
    """Run all repeats; a shape of which a process failed in each is left out of the figures.

    The result so far is written after each repeat, for whoever is ended before the last one.
    """
    shapes, milliseconds = (SEED_SHAPES[-1:], 5.0) if options.quick else (SEED_SHAPES, 200.0)
    rng = random.Random(0)  # noqa: S311 - an order, not a secret
    found: list[Answers] = [{mode: [] for mode in MODES} for _ in shapes]
    failures: list[str] = []
    begin, done, wanted = time.monotonic(), 0, 1 if options.quick else options.repeats

    def so_far() -> Result:
        settings = {"repeats": done, "repeats wanted": wanted, "milliseconds a steady state": milliseconds}
        return summed_up(shapes, found, failures, settings)

    # What is left out is better than what a time limit takes away.
    while done < wanted and (time.monotonic() - begin) * (done + 1) <= options.seconds * max(done, 1):
        done += 1
        answers, failed = one_repeat(shapes, milliseconds, rng)
        failures += failed
        for all_of_shape, of_shape in zip(found, answers, strict=True):
            for mode in MODES:
                all_of_shape[mode] += of_shape[mode]
        if options.results is not None:
            write(so_far(), options.results, metadata() | {"quick": options.quick})
    return so_far()


def summed_up(
    shapes: Sequence[CudaShape], found: Sequence[Answers], failures: Sequence[str], settings: dict[str, object]
) -> Result:
    """Return the result of all answers, one row a shape."""
    complete = [pair for pair in zip(shapes, found, strict=True) if all(pair[1].values())]
    rows = [_row(shape, answers) for shape, answers in complete]
    by_shape = {str(shape): row for (shape, _), row in zip(complete, rows, strict=True)}
    singles = [
        float(row["replay/default"]) for (shape, _), row in zip(complete, rows, strict=True) if shape.dtype == "float32"
    ]
    figures = [
        Figure("processes that failed", len(failures), goal=Goal(0)),
        Figure("shapes with figures", len(rows), goal=Goal(len(shapes), at_least=True)),
        *([Figure("worst float32 shape: replay/default first call", max(singles), goal=Goal(0.1))] if singles else []),
        Figure("measured in replay", sum(_counted(answers, "measured") for _, answers in complete), goal=Goal(0)),
        Figure("rejected in replay", sum(_counted(answers, "rejected") for _, answers in complete), goal=Goal(0)),
        Figure("shapes whose replay differs from tuning", sum(map(_differs, found)), goal=Goal(0)),
    ]
    if rows:
        worst = max(by_shape, key=lambda name: float(by_shape[name]["replay/bare"]))
        slowest = min(by_shape, key=lambda name: float(by_shape[name]["default/replay steady"]))
        figures += [
            Figure(f"worst replay/bare first call ({worst})", by_shape[worst]["replay/bare"], goal=Goal(1.05)),
            Figure(f"worst default/replay steady state ({slowest})", by_shape[slowest]["default/replay steady"]),
        ]
    return Result(
        name="cuda_tunable",
        question="What does a shape's first call cost by default, while tuning, and from a recorded winner?",
        figures=figures,
        settings=settings
        | {"modes": SETTINGS, "failures": list(failures), "primed with": str(PRIMING)}
        | {f"calls: {' '.join(_TOLD)}": {str(shape): _calls(answers) for shape, answers in complete}},
        rows=rows,
    )


def _row(shape: CudaShape, answers: Answers) -> dict[str, Any]:
    firsts = {mode: [answer["first_ms"] for answer in answers[mode]] for mode in MODES}
    middle = {mode: median(values) for mode, values in firsts.items()}
    steady = {mode: spread_of([answer["steady_us"] for answer in answers[mode]]) for mode in MODES[1:]}
    return {
        "shape": str(shape),
        **{f"{mode} ms": middle[mode] for mode in MODES},
        **{f"{mode} from..to": f"{min(values):.3g}..{max(values):.3g}" for mode, values in firsts.items()},
        **{f"{mode} {name}": median([each[name] for each in answers[mode]]) for mode in _COMPARED for name in _SPENT},
        "replay/default": middle["replay"] / middle["default"],
        "replay/bare": middle["replay"] / middle["bare"],
        **{f"{mode} us": spread.median for mode, spread in steady.items()},
        **{
            f"{mode} quartiles": f"{spread.lower_quartile:.4g}..{spread.upper_quartile:.4g}"
            for mode, spread in steady.items()
        },
        "default/replay steady": steady["default"].median / steady["replay"].median,
        "default kernel": answers["default"][-1]["kernel"],
        "winner": answers["replay"][-1]["kernel"],
    }


def _calls(answers: Answers) -> dict[str, list[str]]:
    return {mode: [" ".join(f"{answer[name]:.4g}" for name in _TOLD) for answer in answers[mode]] for mode in _COMPARED}


def _counted(answers: Answers, reason: str) -> int:
    return sum(answer["stats"].get(reason, 0) for answer in answers["replay"])


def _differs(answers: Answers) -> bool:
    """Return whether some replay did not give the bits of the tuning process before it."""
    if not answers["tuning"]:
        return False
    each = len(answers["replay"]) // len(answers["tuning"])
    return any(
        tuned["digest"] != replayed["digest"]
        for place, tuned in enumerate(answers["tuning"])
        for replayed in answers["replay"][place * each : (place + 1) * each]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="repeats; default 5")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        metavar="S",
        help=f"no repeat that would end later; default {SECONDS:g}",
    )
    options = options_of(parser, arguments)
    if options.repeats < 1:
        parser.error("--repeats: at least 1")
    return NO_DEVICE if say_no_device() else finish(lambda: measure(options), options)


if __name__ == "__main__":
    sys.exit(main())
