"""Which file holds the winners that were measured: the results file that they were for, or this build's sibling."""

import math
from collections.abc import Mapping, Sequence

from tensorplay.backends.registry import backend_of
from tensorplay.cli.tuning_file import read_tuning_file
from tensorplay.database.csv_text import FORMAT_VALIDATOR
from tensorplay.database.filename import sibling_name
from tensorplay.database.record import Entry
from tensorplay.database.validators import digest
from tensorplay.distributed.offline import TuneOutcome
from tensorplay.errors import TensorPlayError
from tensorplay.gemm import Signature, parse_signature

__all__ = ["holders"]

# A results file holds six significant digits.
_SAME_TIME = 1e-5


def holders(target: str, outcomes: Sequence[TuneOutcome]) -> list[str | None]:
    """Return the file that holds each winner of one device: the target, or its sibling of this build; None for neither.

    The sibling is looked into only where the target lacks one of them, since its name needs the device.
    """
    in_target = _winners(target)
    found = [target if _has(in_target, outcome) else None for outcome in outcomes]
    if None not in found:
        return found
    device = parse_signature(*outcomes[0].signature).device
    try:
        validators = (FORMAT_VALIDATOR, *backend_of(device).validators(device))
    except TensorPlayError:
        return found
    sibling = sibling_name(target, digest(validators))
    in_sibling = _winners(sibling)
    places = zip(found, outcomes, strict=True)
    return [sibling if place is None and _has(in_sibling, outcome) else place for place, outcome in places]


def _winners(path: str) -> dict[Signature, Entry]:
    try:
        return {winner.signature: winner for winner in read_tuning_file(path).winners}
    except OSError:
        return {}


def _has(winners: Mapping[Signature, Entry], outcome: TuneOutcome) -> bool:
    """Return whether the winner is among these, with its time: another build's may be of the same kernel."""
    winner = winners.get(outcome.signature)
    return outcome.kernel is None or (
        winner is not None
        and winner.kernel == outcome.kernel
        and math.isclose(winner.time_ms, outcome.time_ms or 0.0, rel_tol=_SAME_TIME)
    )
