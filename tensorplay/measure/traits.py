"""Traits: what a kernel id says of a candidate, as numbers by name, so that what is learnt of one tells of others."""

import re
from typing import NamedTuple

__all__ = ["Traits", "traits_of"]

_FIELD = re.compile(r"([a-z]+)(-?\d+)", re.ASCII)
# What makes a number the name of a family, rather than a setting of it.
_FAMILY_FIELD = "id"


class Traits(NamedTuple):
    """The family of a candidate, within which settings mean the same, and its settings."""

    family: str
    values: tuple[tuple[str, int], ...]

    def changes(self, other: "Traits") -> list[tuple[str, int | None, int | None]]:
        """Return the name, value here and value there of each setting that differs; None where there is none."""
        if self.values == other.values:
            return []
        here, there = dict(self.values), dict(other.values)
        names = dict.fromkeys((*here, *there))
        return [(name, here.get(name), there.get(name)) for name in names if here.get(name) != there.get(name)]


def traits_of(kernel: str) -> Traits:
    """Return the traits of a kernel id: words without a number, and `id` with its number, name the family."""
    family, values = [], []
    for field in kernel.split("_"):
        match = _FIELD.fullmatch(field)
        if match is None or match[1] == _FAMILY_FIELD:
            family.append(field)
        else:
            values.append((match[1], int(match[2])))
    return Traits("_".join(family), tuple(values))
