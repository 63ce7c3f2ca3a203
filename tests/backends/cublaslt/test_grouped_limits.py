import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.grouped_limits import LEAST_PRODUCTS, MOST_MULTIPLICATIONS, is_worthwhile
from tensorplay.backends.cublaslt.member import EMPTY, GROUPED_TYPES, Member

SMALL = Member(False, False, 8, 8, 8, 8, 8, 8)
SIZES = st.integers(1, 9)


def test_every_type_that_the_library_groups_has_a_limit_and_no_other() -> None:
    assert MOST_MULTIPLICATIONS.keys() == GROUPED_TYPES


@pytest.mark.parametrize("dtype", sorted(GROUPED_TYPES))
@given(count=st.integers(0, 2 * LEAST_PRODUCTS), k=st.integers(1, 1 << 26))
def test_many_small_products_go_at_once_few_or_large_ones_do_not(dtype: str, count: int, k: int) -> None:
    largest = SMALL._replace(k=k)
    expected = count >= LEAST_PRODUCTS and 64 * k <= MOST_MULTIPLICATIONS[dtype]
    assert is_worthwhile(dtype, [SMALL, *[largest] * (count - 1)] if count else []) == expected


@pytest.mark.parametrize("dtype", ["complex64", "float8_e4m3fn", "int8"])
def test_other_types_do_not(dtype: str) -> None:
    assert not is_worthwhile(dtype, [SMALL] * 100)


@given(SIZES, SIZES, SIZES, st.integers(0, 3), st.booleans(), st.booleans())
def test_lengths_reach_from_the_first_to_the_last_element(
    m: int, n: int, k: int, padding: int, turn_left: bool, turn_right: bool
) -> None:
    lds = (m if turn_left else k) + padding, (k if turn_right else n) + padding, n + padding
    member = Member(turn_left, turn_right, m, n, k, *lds)
    stored = ((k, m) if turn_left else (m, k), (n, k) if turn_right else (k, n), (m, n))
    for (rows, columns), ld, length in zip(stored, lds, member.lengths, strict=True):
        places = np.arange(rows * ld).reshape(rows, ld)[:, :columns]
        assert places.max() - places.min() + 1 == length
    assert member.multiplications == m * n * k
    assert member.is_short


def test_sizes_beyond_32_bits_are_not_short() -> None:
    assert not SMALL._replace(ld_left=1 << 31).is_short
    assert EMPTY.is_short
