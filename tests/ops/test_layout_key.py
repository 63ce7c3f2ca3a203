"""The key that the extension makes: one for each layout that a plan is prepared for, and none for anything else."""

import itertools
import subprocess
import sys
import threading
import tracemalloc
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorplay.ops import keyed

ml_dtypes = pytest.importorskip("ml_dtypes")

Array = NDArray[Any]

pytestmark = pytest.mark.skipif(
    keyed.layout_key is None, reason="tensorplay.ops._layout_key was not built: no compiler, or no headers"
)

TAKEN = [np.dtype(name) for name in ("f2", "f4", "f8", "g", "c8", "c16", "G")] + [
    np.dtype(ml_dtypes.bfloat16),
    np.dtype(ml_dtypes.float8_e4m3fn),
    np.dtype("f4", metadata={"from": "elsewhere"}),
]
REFUSED = [np.dtype(name) for name in ("i4", "u8", "?", "O", ">f4", ">c16", "S4", "U2", "V8", "M8[s]", "m8[s]")] + [
    np.dtype([("real", "f4"), ("imag", "f4")]),
    np.dtype(ml_dtypes.bfloat16).newbyteorder(),
]
LAYOUTS = ("rows", "columns", "padded", "flipped", "stepped", "broadcast", "unaligned", "read-only")


class Operand(NamedTuple):
    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]
    layout: str

    def made(self) -> Array:
        """Return a new array of this kind."""
        dtype, shape = self.dtype, self.shape
        if self.layout == "columns":
            return np.zeros(shape[::-1], dtype).T
        if self.layout == "padded":
            return np.zeros((*shape[:-1], shape[-1] + 2), dtype)[..., : shape[-1]]
        if self.layout == "flipped":
            return np.zeros(shape, dtype)[::-1]
        if self.layout == "stepped":
            return np.zeros((2 * shape[0], *shape[1:]), dtype)[::2]
        if self.layout == "broadcast":
            return np.broadcast_to(np.zeros((1, *shape[1:]), dtype), shape)
        if self.layout == "unaligned" and not dtype.hasobject:
            raw = np.zeros(int(np.prod(shape)) * dtype.itemsize + 1, np.uint8)
            return raw[1:].view(dtype).reshape(shape) if raw.size > 1 else np.zeros(shape, dtype)
        array = np.zeros(shape, dtype)
        array.flags.writeable = self.layout != "read-only"
        return array


class Operands(NamedTuple):
    a: Operand
    b: Operand
    out: Operand | None

    def made(self) -> tuple[Array, Array, Array | None]:
        """Return new arrays."""
        return self.a.made(), self.b.made(), None if self.out is None else self.out.made()


@st.composite
def operands(draw: st.DrawFn) -> Operands:
    """Draw operands of a product that mostly fit, of few sizes, so that layouts repeat."""
    sizes = st.integers(0, 3)
    m, k, n = draw(sizes), draw(sizes), draw(sizes)
    dtype = draw(st.sampled_from(TAKEN) | st.sampled_from(TAKEN + REFUSED))
    layouts = st.sampled_from(("rows", "rows", *LAYOUTS))

    def operand(shape: tuple[int, ...]) -> Operand:
        kind = draw(st.integers(0, 19))
        other = draw(st.sampled_from(TAKEN)) if kind == 0 else dtype
        other_shape = draw(st.tuples(sizes, sizes) | st.tuples(sizes) | st.tuples(sizes, sizes, sizes))
        return Operand(other, other_shape if kind == 1 else shape, draw(layouts))

    out = operand((m, n)) if draw(st.booleans()) else None
    return Operands(operand((m, k)), operand((k, n)), out)


def key_of(a: object, b: object, out: object = None) -> bytes | None:
    assert keyed.layout_key is not None
    return keyed.layout_key(a, b, out)


def matters(a: Array, b: Array, out: Array | None) -> tuple[object, ...] | None:
    """Return what a plan depends on, None for operands that the extension leaves alone."""
    given_ = [a, b] if out is None else [a, b, out]
    if any(array.ndim != 2 or not array.flags.aligned or array.dtype != a.dtype for array in given_):
        return None
    is_number = a.dtype.kind in "fc" or a.dtype.type.__module__ == "ml_dtypes"
    if not is_number or not a.dtype.isnative or a.shape[1] != b.shape[0]:
        return None
    if out is not None and (not out.flags.writeable or out.shape != (a.shape[0], b.shape[1])):
        return None
    return (a.dtype.num, a.shape, b.shape, out is None, *(array.strides for array in given_))


class Pairs:
    """Layouts and keys met so far, one for one."""

    def __init__(self) -> None:
        self._keys: dict[object, bytes] = {}
        self._layouts: dict[bytes, object] = {}

    def meet(self, a: Array, b: Array, out: Array | None) -> None:
        """Ask for a key, which must be that of its layout and of no other."""
        layout, key = matters(a, b, out), key_of(a, b, out)
        assert (key is None) == (layout is None)
        if key is not None:
            assert self._keys.setdefault(layout, key) == key
            assert self._layouts.setdefault(key, layout) == layout


@settings(max_examples=200, deadline=None)
@given(st.lists(operands(), min_size=2, max_size=10))
def test_keys_are_equal_just_where_all_that_matters_is(drawn: list[Operands]) -> None:
    pairs = Pairs()
    for each in drawn * 2:
        pairs.meet(*each.made())


def test_of_all_small_layouts_no_two_have_one_key() -> None:
    shapes = list(itertools.product((1, 2), repeat=2))
    pairs = Pairs()
    for dtype in (np.dtype("f2"), np.dtype(ml_dtypes.bfloat16), np.dtype("f8"), np.dtype("c8")):
        arrays = [Operand(dtype, *each).made() for each in itertools.product(shapes, LAYOUTS[:5])]
        for a, b, out in itertools.product(arrays, arrays, [*arrays, None]):
            pairs.meet(a, b, out)


@pytest.mark.parametrize("dtype", TAKEN, ids=str)
def test_every_type_that_products_are_tuned_for_has_keys(dtype: "np.dtype[Any]") -> None:
    array = np.zeros((3, 3), dtype)
    assert key_of(array, array) is not None
    assert key_of(array, array, array) is not None
    assert key_of(array, array) != key_of(array, array, array)


@pytest.mark.parametrize("dtype", REFUSED, ids=str)
def test_no_other_type_has(dtype: "np.dtype[Any]") -> None:
    array = np.zeros((3, 3), dtype)
    assert key_of(array, array) is None
    assert key_of(array, array, array) is None


def test_types_of_numpy_s_with_parameters_have_none() -> None:
    if hasattr(np, "dtypes") and hasattr(np.dtypes, "StringDType"):
        array = np.zeros((2, 2), np.dtypes.StringDType())
        assert key_of(array, array) is None


class Sub(np.ndarray[Any, Any]):
    """What only claims to be an array."""


class Liar:
    """Says that it is an array, and fails at everything else."""

    @property  # type: ignore[misc]  # the lie
    def __class__(self) -> type:
        return np.ndarray

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


PLAIN = np.ones((2, 2), np.float32)
OTHERS: list[object] = [
    PLAIN.view(Sub),
    np.ma.masked_array(PLAIN),
    Liar(),
    PLAIN.tolist(),
    np.float32(1),
    np.array(1, np.float32),
    PLAIN[0],
    PLAIN[None],
    PLAIN.data,
    np.ndarray,
    PLAIN.dtype,
    Exception("no array"),
    2,
    "text",
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: object.__repr__(other).split()[0])
def test_whatever_is_no_matrix_of_numpy_s_has_none(other: object) -> None:
    assert key_of(other, PLAIN) is None
    assert key_of(PLAIN, other) is None
    assert key_of(PLAIN, PLAIN, other) is None
    assert key_of(other, other, other) is None


def test_only_the_result_may_be_left_out() -> None:
    assert key_of(PLAIN, PLAIN, None) is not None
    assert key_of(PLAIN, None) is None
    assert key_of(None, PLAIN) is None


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_another_number_of_operands_is_an_error(count: int) -> None:
    function: Any = keyed.layout_key
    with pytest.raises(TypeError, match=f"a, b and out, not {count}"):
        function(*[PLAIN] * count)


def test_a_result_that_overlaps_an_operand_has_the_key_of_one_that_does_not() -> None:
    a, b = np.ones((3, 3)), np.ones((3, 3))
    assert key_of(a, b, a) == key_of(a, b, np.empty((3, 3)))


def test_calls_keep_nothing() -> None:
    a, b, out, refused = PLAIN.copy(), PLAIN.copy(), PLAIN.copy(), np.ones((2, 2), np.int32)
    held = (a, b, out, refused, a.dtype, refused.dtype)
    before = [sys.getrefcount(each) for each in held]
    key = key_of(a, b, out)
    assert key is not None
    assert sys.getrefcount(key) == 2
    tracemalloc.start()
    try:
        begin, _ = tracemalloc.get_traced_memory()
        for _ in range(20_000):
            key_of(a, b, out)
            key_of(a, b)
            key_of(refused, refused)
            key_of(a, b, refused)
        end, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert end - begin < 20_000
    assert [sys.getrefcount(each) for each in held] == before


def test_threads_get_their_own_keys() -> None:
    layouts = [Operands(Operand(TAKEN[1], (m, 3), "rows"), Operand(TAKEN[1], (3, 2), "columns"), None) for m in (1, 2)]
    expected = [key_of(*layout.made()) for layout in layouts]
    wrong: list[object] = []

    def ask(number: int) -> None:
        arrays = layouts[number % 2].made()
        wrong.extend(key for key in (key_of(*arrays) for _ in range(5000)) if key != expected[number % 2])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


_IN_ANOTHER_INTERPRETER = """
import importlib
import numpy as np
from tensorplay.ops.keyed import layout_key
interpreters = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
other = interpreters.create()
code = f'''
import importlib.util
spec = importlib.util.spec_from_file_location("tensorplay.ops._layout_key", {path!r})
try:
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
except ImportError:
    pass
'''
failed = None
try:
    failed = interpreters.run_string(other, code)
finally:
    interpreters.destroy(other)
array = np.ones((2, 2))
print(failed, layout_key(array, array, None) is not None)
"""


def test_another_interpreter_has_it_or_is_refused_and_this_one_goes_on() -> None:
    path = sys.modules["tensorplay.ops._layout_key"].__file__
    code = f"import sys; path = {path!r}\n{_IN_ANOTHER_INTERPRETER}"
    ended = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "None True\n"), ended.stderr
