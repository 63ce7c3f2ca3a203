"""Which winners of a results file were never really compared, by the explanations beside it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorplay.database.explanations import ExplanationLog, explanations_name
from tensorplay.database.record import Entry
from tensorplay.database.validators import digest
from tensorplay.gemm import Signature

if TYPE_CHECKING:
    from tensorplay.database.record import Validator

__all__ = ["undecided"]


def undecided(path: str, winners: Sequence[Entry], validators: "Sequence[Validator]") -> dict[Signature, str]:
    """Return the winners that are the first choice since nothing could be told, each with its verdict.

    The product was too slow for the budget, its times scattered, or it could not be timed. Winners that no
    explanation tells of are left out: those that were set by hand, and those whose explanation was dropped.
    """
    # Imported here, since `--help` need not wait for them.
    from tensorplay.measure.report import Verdict  # noqa: PLC0415 - see above
    from tensorplay.runtime.device_explanations import explains  # noqa: PLC0415 - see above

    open_verdicts = {Verdict.INSUFFICIENT_BUDGET, Verdict.UNSTABLE, Verdict.NOT_MEASURED}
    try:
        said = ExplanationLog(explanations_name(path)).read().explanations
    except (OSError, ValueError):
        return {}
    build = digest(validators)
    unsettled = {each.signature: each for each in said if each.build == build and each.verdict in open_verdicts}
    return {
        winner.signature: unsettled[winner.signature].verdict
        for winner in winners
        if winner.signature in unsettled and explains(unsettled[winner.signature], winner)
    }
