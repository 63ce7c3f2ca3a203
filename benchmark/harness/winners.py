"""A results file as a large fleet would leave it, for the benchmarks that need many winners."""

from collections.abc import Iterator
from pathlib import Path

from tensorplay.database.csv_text import format_results
from tensorplay.database.record import Entry, Validator
from tensorplay.gemm import GemmProblem, dtype_of_word, signature_of

__all__ = ["many_winners", "write_winners"]

_DTYPES = tuple(map(dtype_of_word, ("Float32", "Float64", "BFloat16")))
_KERNELS = (
    "Default",
    "host_numpy_threads1",
    "host_numpy_threads2",
    "host_scipy_threads1",
    "host_scipy_threads2",
)


def many_winners(count: int, *, padded_every: int = 5) -> Iterator[Entry]:
    """Yield winners of `count` different signatures; m goes to 100, n and k to 6400 in steps of 64.

    Parameters
    ----------
    count : int
        At most a million.
    padded_every : int
        Every so many have a padded leading dimension, whose further field costs more to check than a plain
        line; 0 for none.
    """
    for number in range(count):
        m, n, k = 1 + number % 100, 64 * (1 + number // 100 % 100), 64 * (1 + number // 10_000)
        problem = GemmProblem(
            dtype=_DTYPES[number % len(_DTYPES)],
            m=m,
            n=n,
            k=k,
            bias=number % 2 == 1,
            ld_right=n + 16 if padded_every and number % padded_every == 0 else None,
        )
        yield Entry(*signature_of(problem), _KERNELS[number % len(_KERNELS)], round(1e-7 * m * n * k, 6))


def write_winners(path: Path, validators: list[tuple[str, str]], count: int, *, padded_every: int = 5) -> None:
    """Write a results file of this build with `count` winners."""
    facts = [Validator(name, value) for name, value in validators]
    winners = many_winners(count, padded_every=padded_every)
    path.write_text(format_results(facts, winners), encoding="utf-8", newline="\n")
