"""A trial's kernels are begun together, each once; those of other types only where there are processors for them."""

from collections.abc import Callable, Sequence

import pytest

from tensorplay.backends.cublaslt import closeness, fill, spin, trial_kernels
from tensorplay.backends.cublaslt.trial_kernels import begin_compiling_for
from tensorplay.gemm import dtype_of_name

HOPPER, AMPERE = (9, 0), (8, 0)
COMMON = {closeness.SOURCE, spin.SOURCE}
Begun = list[tuple[tuple[int, int], set[str]]]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Begun]:
    """Returns what is given to the compiler, of so many processors, without compiling it."""
    calls: Begun = []

    def begin(sources: Sequence[str], capability: tuple[int, int]) -> None:
        calls.append((capability, set(sources)))

    def with_processors(count: int) -> Begun:
        monkeypatch.setattr(trial_kernels, "at_once", lambda: count)
        return calls

    monkeypatch.setattr(trial_kernels, "_begun", set())
    monkeypatch.setattr(trial_kernels, "begin_compiling", begin)
    return with_processors


def begin(name: str, capability: tuple[int, int] = HOPPER) -> None:
    dtype = dtype_of_name(name)
    assert dtype is not None
    begin_compiling_for(dtype, capability)


def test_with_one_processor_only_what_the_trial_needs_is_begun(begun: Callable[[int], Begun]) -> None:
    calls = begun(1)
    begin("bfloat16")
    begin("bfloat16")
    begin("complex64")
    assert calls == [(HOPPER, COMMON | {fill.SOURCES["bfloat16"]}), (HOPPER, {fill.SOURCES["float32"]})]


def test_with_more_the_types_that_may_be_next_are_begun_too(begun: Callable[[int], Begun]) -> None:
    calls = begun(8)
    begin("tf32")
    for name in ("float32", "float64", "float16", "bfloat16"):
        begin(name)
    assert calls == [(HOPPER, COMMON | {fill.SOURCES[name] for name in ("float32", "float64", "float16", "bfloat16")})]
    begin("float8_e4m3fn")
    assert calls[1:] == [(HOPPER, {fill.SOURCES["float8_e4m3fn"]})]


def test_another_device_needs_code_of_its_own(begun: Callable[[int], Begun]) -> None:
    calls = begun(1)
    begin("float32", HOPPER)
    begin("float32", AMPERE)
    assert [capability for capability, _ in calls] == [HOPPER, AMPERE]
    assert calls[0][1] == calls[1][1]
