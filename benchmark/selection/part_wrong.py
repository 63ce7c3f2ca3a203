"""Recorded winners over random problems: whether any computes something else than the product in float64."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cuda_reach.products import Case

from selection.ours import Tuner
from selection.random_problems import random_cases
from selection.setting import Setting
from tensorplay.gemm import parse_signature

__all__ = ["items", "measured"]

_CHUNK = 100
# Enough pairs for a winner, and none that is refused for gaining little: the more kernels win, the more are judged.
_QUICK = {"MAX_TUNING_DURATION_MS": "30", "MAX_TUNING_SAMPLES": "30", "MIN_GAIN": "0"}
_SEARCH_SECONDS = 0.05
# Some problems have no signature of their own: what is asked for is reached all the same.
_SURPLUS = 1.05


def items(setting: Setting) -> list[str]:
    """Return the names of chunks of problems: numbers from and to."""
    count = round(setting.problems * _SURPLUS)
    return [f"{first}:{min(first + _CHUNK, count)}" for first in range(0, count, _CHUNK)]


def measured(setting: Setting, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row a chunk."""
    cases = random_cases(round(setting.problems * _SURPLUS))
    for item in wanted:
        first, after = map(int, item.split(":"))
        with TemporaryDirectory() as folder:
            tuner = Tuner(folder, "search", _SEARCH_SECONDS, _QUICK)
            wrong = [row for seed in range(first, after) if (row := _judged(tuner, cases[seed], seed)) is not None]
            yield {"item": item, **_recorded(tuner, Path(folder)), "wrong": wrong}


def _judged(tuner: Tuner, case: Case, seed: int) -> dict[str, Any] | None:
    """Return what is wrong with a product as it is replayed from its winner, None where it is right."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = case.dtype == "tf32"
    try:
        posed = case.posed(seed)
        compute = tuner.under(posed.compute)
        compute()
        posed.out.fill_(float("nan"))
        compute()
        torch.cuda.synchronize()
        share = case.share_of_bound(posed, posed.found())
        if share <= 1.0 and not posed.has_spilled():
            return None
        return {"case": str(case), "seed": seed, "share": share, "spilled": posed.has_spilled()}
    except Exception as error:  # noqa: BLE001 - it is the finding, and the other problems go on
        return {"case": str(case), "seed": seed, "error": f"{type(error).__name__}: {error}"[:300]}
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def _recorded(tuner: Tuner, folder: Path) -> dict[str, int]:
    """Return how many winners there are in memory and in the file, and how many are not the first choice."""
    entries = tuner.context.get_results()
    backend = tuner.context.backend("0")
    replaced = sum(
        kernel != backend.first_choice(parse_signature(op, params)).kernel for op, params, kernel, _ in entries
    )
    lines = [line for path in folder.glob("*.csv") for line in path.read_text(encoding="utf-8").splitlines()]
    in_file = sum(line.startswith("GemmTunableOp_") for line in lines)
    return {"recorded": len(entries), "in_file": in_file, "replaced": replaced}
