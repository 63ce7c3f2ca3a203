"""What an import brings into a fresh process: nothing that the caller did not ask for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tensorplay
from tensorplay import tunable
from tensorplay.cuda import tunable as cuda_tunable

HEAVY = {"asyncio", "click", "cuda", "fastapi", "filelock", "nvmath", "rich", "scipy", "threadpoolctl", "torch"}

_MULTIPLY = "import numpy, tensorplay; tensorplay.mm(numpy.ones((2, 3)), numpy.ones((3, 4)))"


def _imported_by(code: str, folder: Path) -> set[str]:
    """Return the top-level modules that a fresh process has after the code."""
    ending = "\nimport json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    command = [sys.executable, "-P", "-W", "error", "-c", code + ending]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(json.loads(ended.stdout))


@pytest.mark.parametrize(
    "code",
    [
        "import tensorplay",
        _MULTIPLY,
        "from tensorplay.cuda import tunable; tunable.is_enabled()",
        "import tensorplay; tensorplay.tunable.settings()",
        "from tensorplay import errors, gemm, testing",
    ],
    ids=["import", "product", "cuda.tunable", "settings", "others"],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str, tmp_path: Path) -> None:
    assert _imported_by(code, tmp_path) & HEAVY == set()


def test_an_import_brings_no_array_library(tmp_path: Path) -> None:
    assert _imported_by("import tensorplay", tmp_path) & {"numpy", "ml_dtypes"} == set()


def test_what_is_imported_can_be_seen(tmp_path: Path) -> None:
    assert {"tensorplay", "asyncio"} <= _imported_by("import tensorplay, asyncio", tmp_path)


def test_a_product_with_the_feature_off_makes_no_file(tmp_path: Path) -> None:
    _imported_by(_MULTIPLY, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_every_public_name_can_be_had_and_is_listed() -> None:
    assert sorted(tensorplay.__all__) == tensorplay.__all__
    for name in tensorplay.__all__:
        assert getattr(tensorplay, name) is not None
        assert name in dir(tensorplay)


@pytest.mark.parametrize("name", ["errors", "gemm", "testing"])
def test_a_module_of_the_package_can_be_had_without_importing_it_first(name: str, tmp_path: Path) -> None:
    assert "tensorplay" in _imported_by(f"import tensorplay; tensorplay.{name}.__all__", tmp_path)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'tensorplay' has no attribute 'nosuch'"):
        tensorplay.nosuch  # noqa: B018 - reading it is the test


def test_both_modules_of_public_functions_have_the_same_ones() -> None:
    assert tunable.__all__ == cuda_tunable.__all__
    for name in tunable.__all__:
        assert getattr(tunable, name) is getattr(cuda_tunable, name)


def test_every_public_function_is_in_the_list() -> None:
    defined = {
        name for name, value in vars(cuda_tunable).items() if getattr(value, "__module__", "") == cuda_tunable.__name__
    }
    assert defined | {"get_tuning_context"} == set(cuda_tunable.__all__)


def test_the_methods_of_the_context_are_the_public_functions() -> None:
    context = cuda_tunable.get_tuning_context()
    assert [name for name in cuda_tunable.__all__ if not callable(getattr(context, name, None))] == [
        "get_tuning_context"
    ]
