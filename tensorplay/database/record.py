"""The two kinds of line that a results file holds: winners and validators."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from tensorplay.errors import RecordError
from tensorplay.gemm import Signature, is_kernel_id, is_signature

__all__ = ["Entry", "Validator", "check_entry", "check_signature", "check_validator", "check_validators"]

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


def check_signature(signature: Signature) -> Signature:
    """Return the signature; `RecordError` when no product that is tuned has it."""
    if not is_signature(signature.op, signature.params):
        raise RecordError(f"{signature.op!r}, {signature.params!r} is no signature of a tuned product")
    return signature


def check_entry(entry: Entry) -> Entry:
    """Return the entry; `RecordError` when a results file could not give it back."""
    if not is_signature(entry.op, entry.params):
        check_signature(entry.signature)
    if not is_kernel_id(entry.kernel):
        raise RecordError(f"{entry.kernel!r} is no kernel id; allowed: Default, lt_..., host_..., cublas, skinny_...")
    if not (math.isfinite(entry.time_ms) and entry.time_ms >= 0):
        raise RecordError(f"the time of {entry.params!r} is {entry.time_ms!r}; allowed: milliseconds from 0 up")
    return entry


def check_validator(validator: Validator) -> Validator:
    """Return the validator; `RecordError` when a results file could not give it back."""
    name, value = validator
    if not name or not name.isascii() or "," in name or any(not c.isprintable() or c.isspace() for c in name):
        raise RecordError(f"validator name {name!r} is not plain; allowed: printable ASCII without commas or blanks")
    if value != value.strip() or not value or _FORBIDDEN_IN_VALUE & frozenset(value) or not _is_encodable(value):
        raise RecordError(f"value {value!r} of validator {name} is empty, padded, holds a line end or is no text")
    return validator


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def check_validators(validators: Iterable[Validator]) -> tuple[Validator, ...]:
    """Return the validators of one build, in the order given; `RecordError` for none, a bad one or a name twice."""
    checked = tuple(map(check_validator, validators))
    if not checked:
        raise RecordError("a build without validators cannot tell its files from others'; give at least one")
    if len({validator.name for validator in checked}) < len(checked):
        raise RecordError(f"a validator is named twice: {[validator.name for validator in checked]}")
    return checked
