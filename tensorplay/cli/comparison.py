"""Which winners of a results file were never really compared, by the explanations beside it, and which have none."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tensorplay.database.explanations import ExplanationLog, explanations_name
from tensorplay.database.record import Entry
from tensorplay.database.validators import digest
from tensorplay.gemm import Signature

if TYPE_CHECKING:
    from tensorplay.database.explanation import Explanation
    from tensorplay.database.record import Validator

__all__ = ["undecided", "unexplained"]


def undecided(path: str, winners: Sequence[Entry], validators: "Sequence[Validator]") -> dict[Signature, str]:
    """Return the winners that are the first choice since nothing could be told, each with its verdict.

    The product was too slow for the budget, its times scattered, or it could not be timed. Winners that no
    explanation tells of are left out: those that were set by hand, and those whose explanation was dropped.
    """
    from tensorplay.measure.report import UNDECIDED  # noqa: PLC0415 - `--help` need not wait for it

    told = _explained(path, winners, validators)
    return {signature: each.verdict for signature, each in told.items() if each.verdict in UNDECIDED}


def unexplained(path: str, winners: Sequence[Entry], validators: "Sequence[Validator]") -> list[Signature]:
    """Return the winners that no explanation tells of, so that nobody can say whether they were compared."""
    told = _explained(path, winners, validators)
    return [winner.signature for winner in winners if winner.signature not in told]


def _explained(
    path: str, winners: Sequence[Entry], validators: "Sequence[Validator]"
) -> "Mapping[Signature, Explanation]":
    """Return the explanation of each winner that has one."""
    from tensorplay.runtime.device_explanations import explains  # noqa: PLC0415 - `--help` need not wait for it

    try:
        said = ExplanationLog(explanations_name(path)).read().explanations
    except (OSError, ValueError):
        return {}
    build = digest(validators)
    newest = {each.signature: each for each in said if each.build == build}
    return {
        winner.signature: newest[winner.signature]
        for winner in winners
        if winner.signature in newest and explains(newest[winner.signature], winner)
    }
