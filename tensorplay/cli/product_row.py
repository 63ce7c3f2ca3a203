"""One line of `tensorplay show`: a signature taken apart, with its winner where it has one."""

from collections.abc import Callable
from dataclasses import dataclass

from tensorplay.database.record import Entry
from tensorplay.gemm import Signature, parse_signature

__all__ = ["SORT_KEYS", "ProductRow", "row_of_untuned", "row_of_winner"]

Key = str | float | tuple[str | int, ...] | None

_PLAIN_FIELDS = 6


@dataclass(frozen=True, slots=True)
class ProductRow:
    """A product of a file, for people to read, filter and sort.

    Attributes
    ----------
    op, params : str
        The signature as it stands in the file.
    dtype : str
        As NumPy spells it.
    flags : str
        What is not plain, with blanks between: `T` for a right operand used transposed, `bias`, and the further
        fields of the params.
    flops : int
        Floating-point operations of one product.
    kernel : str or None
        None in an untuned file.
    time_ms : float or None
        None where no time is recorded.
    """

    op: str
    params: str
    dtype: str
    device: str
    m: int
    n: int
    k: int
    batch: int
    flags: str
    flops: int
    kernel: str | None
    time_ms: float | None


def row_of_winner(entry: Entry) -> ProductRow:
    """Return the row of a winner that a file gave."""
    return _row(entry.op, entry.params, entry.kernel, entry.time_ms or None)


def row_of_untuned(signature: Signature) -> ProductRow:
    """Return the row of an untuned signature that a file gave."""
    return _row(signature.op, signature.params, None, None)


def _row(op: str, params: str, kernel: str | None, time_ms: float | None) -> ProductRow:
    problem = parse_signature(op, params)
    flags = ["T"] if problem.transpose_right else []
    flags += ["bias"] if problem.bias else []
    flags += params.split("_")[_PLAIN_FIELDS:]
    return ProductRow(
        op=op,
        params=params,
        dtype=problem.dtype.name,
        device=problem.device,
        m=problem.m,
        n=problem.n,
        k=problem.k,
        batch=problem.batch,
        flags=" ".join(flags),
        flops=problem.flops,
        kernel=kernel,
        time_ms=time_ms,
    )


def _speed(row: ProductRow) -> float | None:
    return row.flops / row.time_ms if row.time_ms else None


SORT_KEYS: dict[str, Callable[[ProductRow], Key]] = {
    "op": lambda row: (row.op, row.m, row.n, row.k, row.params),
    "dtype": lambda row: (row.dtype, row.m, row.n, row.k, row.params),
    "m": lambda row: (row.m, row.n, row.k, row.op, row.params),
    "n": lambda row: (row.n, row.m, row.k, row.op, row.params),
    "k": lambda row: (row.k, row.m, row.n, row.op, row.params),
    "kernel": lambda row: row.kernel,
    "time": lambda row: row.time_ms,
    "flops": lambda row: row.flops,
    "speed": _speed,
}
"""What rows can be sorted by; None, where a row has no such value, goes last in either direction."""
