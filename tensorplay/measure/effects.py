"""Effects: what a change of one setting has been worth so far, to look first where it is likely to be fast."""

import math

from tensorplay.measure.traits import Traits

__all__ = ["MOST_EFFECTS", "Effects"]

MOST_EFFECTS = 4096
"""Values of settings that are remembered; the oldest go first."""

_OPTIMISM = 0.05
"""How much faster than expected, as a share, a value may turn out that was never tried: doubts grow with novelty."""

_LARGEST_STEP = 0.7
"""What is a hundred times slower says no more than what is twice as slow."""

_MOST_WEIGHT = 12.0
"""Of what is known about one value: later observations, near the best, are to count."""

_FAMILY = ""

_Key = tuple[str, str, int | None]


class Effects:
    """An additive model of log times, within each family of candidates: one number for each value of a setting.

    It need not be right: it decides the order in which candidates are tried, and nothing else.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # Mean effect, and how many observations it is worth.
        self._known: dict[_Key, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def expected(self, parent: Traits, child: Traits) -> float:
        """Return the log of how much longer the child should take than the parent, less what is hoped for."""
        change, doubt = 0.0, 0.0
        for old, new in _keys(parent, child):
            mean, weight = self._known.get(new, (0.0, 0.0))
            change += mean - self._known.get(old, (0.0, 0.0))[0]
            doubt += 1.0 / (1.0 + weight)
        return change - _OPTIMISM * math.sqrt(doubt)

    def learn(self, parent: Traits, child: Traits, change: float) -> None:
        """Take in that the child took `change` longer than the parent, as the log of the ratio."""
        keys = _keys(parent, child)
        if not keys:
            return
        known = sum(self._known.get(new, (0.0, 0.0))[0] - self._known.get(old, (0.0, 0.0))[0] for old, new in keys)
        surprise = max(-_LARGEST_STEP, min(_LARGEST_STEP, change)) - known
        for _, new in keys:
            mean, weight = self._known.pop(new, (0.0, 0.0))
            weight = min(weight + 1.0, _MOST_WEIGHT)
            self._known[new] = (mean + surprise / len(keys) / weight, weight)
        while len(self._known) > MOST_EFFECTS:
            del self._known[next(iter(self._known))]

    def fade(self) -> None:
        """Trust what is known less from now on, since the next product is another one."""
        self._known = {key: (0.5 * mean, min(weight, 1.0)) for key, (mean, weight) in self._known.items()}


def _keys(parent: Traits, child: Traits) -> list[tuple[_Key, _Key]]:
    """Return the old and the new value of each setting that differs; of other families, only that they are others."""
    if parent.family != child.family:
        return [((parent.family, _FAMILY, None), (child.family, _FAMILY, None))]
    family = child.family
    return [((family, name, old), (family, name, new)) for name, old, new in parent.changes(child)]
