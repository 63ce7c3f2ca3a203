"""A signature in a table: op and params as files have them, or on a terminal, where room is scarce, the data type."""

import sys

from tensorplay.cli.table import Column
from tensorplay.errors import SignatureError
from tensorplay.gemm import parse_signature

__all__ = ["signature_cells", "signature_columns"]


def signature_columns() -> tuple[Column, Column]:
    """Return the columns: on a terminal the data type, which says which op it is, takes the place of the op."""
    return Column("dtype" if sys.stdout.isatty() else "op"), Column("params")


def signature_cells(op: str, params: str) -> list[str]:
    """Return the cells; the op of what is no signature is shown as it is."""
    if sys.stdout.isatty():
        try:
            return [parse_signature(op, params).dtype.name, params]
        except SignatureError:
            pass
    return [op, params]
