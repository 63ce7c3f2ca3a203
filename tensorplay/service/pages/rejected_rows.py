"""Rejections as people count them: a file that was refused is one, however much of it differs."""

from collections.abc import Sequence
from typing import NamedTuple

from tensorplay.service.schemas import RejectionModel

__all__ = ["RejectedRow", "rejected_rows"]

_MISMATCH = "validator_mismatch"


class RejectedRow(NamedTuple):
    """One rejection, as the table shows it: `model` is the first of `mismatches` where it is a refused file."""

    model: RejectionModel
    mismatches: Sequence[tuple[str, RejectionModel]]
    """Of a refused file the names of the validators that differ, each with what it was and what was found."""


def rejected_rows(found: Sequence[RejectionModel]) -> list[RejectedRow]:
    """Return the rows of a table, in the order in which they were met."""
    rows: list[RejectedRow] = []
    of_files: dict[str, list[tuple[str, RejectionModel]]] = {}
    for each in found:
        if each.code != _MISMATCH or each.file is None:
            rows.append(RejectedRow(each, ()))
            continue
        known = of_files.get(each.file)
        if known is None:
            of_files[each.file] = known = []
            rows.append(RejectedRow(each, known))
        known.append((_name_of(each), each))
    return rows


def _name_of(each: RejectionModel) -> str:
    """Return which validator differs: the reason names it, before the values that the table shows by themselves."""
    return each.reason.partition(": ")[2].partition(": expected ")[0]
