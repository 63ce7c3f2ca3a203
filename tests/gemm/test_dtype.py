import dataclasses

import numpy as np
import pytest

from tensorplay.errors import SignatureError
from tensorplay.gemm import DType, dtype_of_name, dtype_of_word
from tensorplay.gemm.dtype import DTYPES, dtype_called

STORED = [dtype for dtype in DTYPES if dtype.name != "tf32"]


@pytest.mark.parametrize("field", ["name", "word", "code"])
def test_no_two_types_share_a_name_word_or_code(field: str) -> None:
    values = [getattr(dtype, field) for dtype in DTYPES]
    assert len(set(values)) == len(values)


def test_codes_never_collide_with_the_key_of_none() -> None:
    assert all(dtype.code >= 0 for dtype in DTYPES)


@pytest.mark.parametrize("dtype", STORED, ids=lambda dtype: dtype.name)
def test_facts_are_those_of_the_array_libraries(dtype: DType) -> None:
    import ml_dtypes

    stored = np.dtype(dtype.name)
    assert dtype.itemsize == stored.itemsize
    assert dtype.is_complex == (stored.kind == "c")
    assert dtype.unit_roundoff == float(ml_dtypes.finfo(stored).eps) / 2  # type: ignore[no-untyped-call]  # it has no types


def test_tf32_is_stored_as_float32_and_rounds_as_half_precision_does() -> None:
    tf32, single, half = dtype_of_name("tf32"), dtype_of_name("float32"), dtype_of_name("float16")
    assert tf32 is not None
    assert single is not None
    assert half is not None
    assert tf32.itemsize == single.itemsize
    assert tf32.unit_roundoff == half.unit_roundoff


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_a_type_is_found_by_its_name_and_by_its_word(dtype: DType) -> None:
    assert dtype_of_name(dtype.name) is dtype
    assert dtype_of_word(dtype.word) is dtype


@pytest.mark.parametrize("name", ["int8", "object", "Float32", "", ">f4"])
def test_a_type_that_is_not_tuned_has_no_name_here(name: str) -> None:
    assert dtype_of_name(name) is None


@pytest.mark.parametrize("word", ["float32", "Int8", "", "Float32\n", "TF32"])
def test_an_unknown_word_is_refused_with_the_known_ones(word: str) -> None:
    with pytest.raises(SignatureError, match="known: Float32, Tf32, Float64") as caught:
        dtype_of_word(word)
    assert repr(word) in str(caught.value)


def test_a_type_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        DTYPES[0].code = 9  # type: ignore[misc]  # what is tested


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_a_person_may_call_a_type_by_its_word_or_its_name_in_any_case(dtype: DType) -> None:
    for text in (dtype.word, dtype.name, dtype.name.upper(), f"torch.{dtype.name}"):
        assert dtype_called(text) is dtype


@pytest.mark.parametrize(
    ("text", "name"),
    [("double", "float64"), ("torch.float", "float32"), ("half", "float16"), ("cdouble", "complex128"), ("int8", None)],
)
def test_a_person_may_call_a_type_as_torch_does(text: str, name: str | None) -> None:
    assert dtype_called(text) == (dtype_of_name(name) if name else None)
