import math
from collections.abc import Callable

import pytest

from tensorplay.database.record import (
    Entry,
    Validator,
    check_entry,
    check_signature,
    check_validator,
    check_validators,
)
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature

MakeEntry = Callable[..., Entry]
OP, PARAMS = "GemmTunableOp_Float32", "taN_m8_n8_k8_bias0_devcpu"


def test_an_entry_knows_its_signature(make_entry: MakeEntry) -> None:
    assert make_entry(8).signature == Signature("GemmTunableOp_Float32", "taN_m8_n8_k8_bias0_devcpu")


@pytest.mark.parametrize("time_ms", [0.0, 0.5, 1e300, 5e-324])
def test_any_finite_time_from_zero_up_is_accepted(make_entry: MakeEntry, time_ms: float) -> None:
    entry = make_entry(8, time_ms=time_ms)
    assert check_entry(entry) is entry


@pytest.mark.parametrize(
    "entry",
    [
        Entry("GemmTunableOp_float", PARAMS, "Default", 0.5),
        Entry("GemmTunableOp_Float32\n", PARAMS, "Default", 0.5),
        Entry(OP, PARAMS + "\n", "Default", 0.5),
        Entry(OP, "taN_m08_n8_k8_bias0_devcpu", "Default", 0.5),
        Entry(OP, PARAMS, "", 0.5),
        Entry(OP, PARAMS, "Default,1", 0.5),
        Entry(OP, PARAMS, "Default", math.nan),
        Entry(OP, PARAMS, "Default", math.inf),
        Entry(OP, PARAMS, "Default", -0.1),
    ],
)
def test_an_entry_that_no_file_could_give_back_is_refused(entry: Entry) -> None:
    with pytest.raises(RecordError):
        check_entry(entry)


def test_a_signature_that_no_product_has_is_refused() -> None:
    with pytest.raises(RecordError, match="no signature"):
        check_signature(Signature("GemmTunableOp_Float32", "taN"))


@pytest.mark.parametrize(
    "value", ["1", "8.9:NVIDIA GeForce RTX 4090", "Xeon, 2 cores", 'say "x"', "Prozessor für Österreich"]
)
def test_validator_values_may_hold_commas_quotes_and_any_letters(value: str) -> None:
    assert check_validator(Validator("NAME", value)).value == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", "1"),
        ("A,B", "1"),
        ("A B", "1"),
        ("Ä", "1"),
        ("A\n", "1"),
        ("A", ""),
        ("A", " 1"),
        ("A", "1\r"),
        ("A", "1\n2"),
        ("A", "1\r2"),
        ("A", "1\x002"),
        ("A", "1\ud8002"),
    ],
)
def test_a_validator_that_no_file_could_give_back_is_refused(name: str, value: str) -> None:
    with pytest.raises(RecordError):
        check_validator(Validator(name, value))


def test_the_validators_of_a_build_keep_their_order(validators: tuple[Validator, ...]) -> None:
    assert check_validators(list(validators)) == validators


def test_a_build_without_validators_or_with_one_twice_is_refused() -> None:
    with pytest.raises(RecordError, match="at least one"):
        check_validators([])
    with pytest.raises(RecordError, match="twice"):
        check_validators([Validator("A", "1"), Validator("A", "1")])
