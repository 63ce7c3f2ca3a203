"""The two kinds of line that a results file holds: winners and validators."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from tensorplay.errors import RecordError
from tensorplay.gemm import Signature, is_kernel_id, is_signature

__all__ = ["Entry", "Validator", "check_entry", "check_validator"]

_FORBIDDEN_IN_VALUE = frozenset("\r\n\0")


class Entry(NamedTuple):
    """One winner: the kernel to replay for a signature, and the time in milliseconds that it was measured at."""

    op: str
    params: str
    kernel: str
    time_ms: float

    @property
    def signature(self) -> Signature:
        """Return the op and params as the key of this winner."""
        return Signature(self.op, self.params)


class Validator(NamedTuple):
    """One fact about the build that a winner was measured on; the value may hold commas, but no line end."""

    name: str
    value: str


def check_entry(entry: Entry) -> Entry:
    """Return the entry; `RecordError` when a results file could not give it back."""
    if not is_signature(entry.op, entry.params):
        raise RecordError(f"{entry.op!r}, {entry.params!r} is no signature of a tuned product")
    if not is_kernel_id(entry.kernel):
        raise RecordError(f"{entry.kernel!r} is no kernel id; allowed: Default, lt_..., host_...")
    if not (math.isfinite(entry.time_ms) and entry.time_ms >= 0):
        raise RecordError(f"the time of {entry.params!r} is {entry.time_ms!r}; allowed: milliseconds from 0 up")
    return entry


def check_validator(validator: Validator) -> Validator:
    """Return the validator; `RecordError` when a results file could not give it back."""
    name, value = validator
    if not name or not name.isascii() or "," in name or any(not c.isprintable() or c.isspace() for c in name):
        raise RecordError(f"validator name {name!r} is not plain; allowed: printable ASCII without commas or blanks")
    if value != value.strip() or not value or _FORBIDDEN_IN_VALUE & frozenset(value):
        raise RecordError(f"value {value!r} of validator {name} is empty, padded or holds a line end")
    return validator


def check_validators(validators: Iterable[Validator]) -> tuple[Validator, ...]:
    """Return the validators of one build, sorted; `RecordError` when one is bad or a name stands twice."""
    checked = tuple(sorted(map(check_validator, validators)))
    if len({validator.name for validator in checked}) < len(checked):
        raise RecordError(f"a validator is named twice: {[validator.name for validator in checked]}")
    return checked
