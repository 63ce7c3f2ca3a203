"""`mm` does the same with the extension and without it."""

import inspect
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorplay
from tensorplay.ops import keyed
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

PLAIN: Any = getattr(tensorplay.mm, "__wrapped__", tensorplay.mm)

_LEFT_OUT = "import sys; sys.modules['tensorplay.ops._layout_key'] = None"
_PROGRAM = """
import json
import numpy as np
import tensorplay
from tensorplay.ops.keyed import layout_key

a, b, out = np.ones((4, 5), np.float32), np.ones((5, 6), np.float32), np.empty((4, 6), np.float32)
found = [tensorplay.mm(a, b, out=out) is out, float(out.sum())]
for _ in range(4):
    found.append(float(tensorplay.mm(a, b).sum()))
    tensorplay.mm(a, b, out=out)
found.append(int(tensorplay.mm(a.astype(int), b.astype(int)).sum()))
found.append(tensorplay.mm(a.tolist(), b.tolist()).shape)
try:
    tensorplay.mm(a, a)
except tensorplay.errors.ShapeError as error:
    found.append(str(error))
context = tensorplay.tunable.get_tuning_context()
stats = context.stats()
found += [stats["measured"], stats["replayed"], len(context.plans), len(context.get_results())]
print(json.dumps([layout_key is None, found]))
"""
ON = {
    "TP_TUNABLEOP_ENABLED": "1",
    "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "1",
    "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "3",
}


def _run(code: str, folder: Path) -> Any:
    command = [sys.executable, "-P", "-W", "error", "-c", code]
    ended = subprocess.run(command, cwd=folder, env=os.environ | ON, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_program_does_the_same_where_the_extension_was_left_out(tmp_path: Path) -> None:
    folders = [tmp_path / "as it is", tmp_path / "left out"]
    for folder in folders:
        folder.mkdir()
    as_it_is, left_out = (
        _run(code, folder) for code, folder in zip((_PROGRAM, f"{_LEFT_OUT}\n{_PROGRAM}"), folders, strict=True)
    )
    assert [as_it_is[0], left_out[0]] == [keyed.layout_key is None, True]
    assert as_it_is[1] == left_out[1]


def test_mm_is_the_documented_function_either_way() -> None:
    assert tensorplay.mm.__name__ == tensorplay.mm.__qualname__ == "mm"
    assert "Multiply two matrices" in (tensorplay.mm.__doc__ or "")
    assert str(inspect.signature(tensorplay.mm)).startswith("(a: Any, b: Any, *, out: Any = None)")
    assert inspect.isfunction(tensorplay.mm)
    assert pickle.loads(pickle.dumps(tensorplay.mm)) is tensorplay.mm  # noqa: S301 - made here
    assert (tensorplay.mm is PLAIN) == (keyed.layout_key is None)


def _outcome(mm: Callable[..., Any], a: Any, b: Any, out: Any) -> tuple[object, ...]:
    try:
        found = mm(a, b, out=out)
    except (TypeError, ValueError) as error:
        return type(error), str(error), type(error.__cause__)
    return type(found), found.dtype.str, found.strides, found.tobytes(), found is out


_FORMS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda array: array,
    "transposed": lambda array: array.T,
    "by columns": np.asfortranarray,
    "flipped": lambda array: array[::-1],
    "a vector": lambda array: array[0] if len(array) else array,
    "a stack": lambda array: array[None],
    "a list": lambda array: array.tolist(),
    "masked": np.ma.masked_array,
    "foreign": lambda array: array.astype(array.dtype.newbyteorder()),
    "integers": lambda array: array.astype(np.int64),
    "doubles": lambda array: array.astype(np.float64),
}


@pytest.mark.parametrize("enabled", ["0", "1"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_both_ways_return_and_raise_the_same(enabled: str, data: st.DataObject, tmp_path: Path) -> None:
    environ = {"TP_TUNABLEOP_ENABLED": enabled, "TP_TUNABLEOP_TUNING": "0"}
    sizes = st.integers(0, 3)
    m, k, n = data.draw(sizes), data.draw(sizes), data.draw(sizes)
    forms = st.sampled_from(["as it is"] * 5 + list(_FORMS))

    def operand(rows: int, columns: int) -> Any:
        values = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        return _FORMS[data.draw(forms)](values)

    a, b = operand(m, k), operand(k, n)
    given_out = data.draw(st.sampled_from(["none", "own", "left", "read-only"]))
    with use_context(TuningContext(environ=environ, directory=tmp_path)) as context:
        outcomes = []
        for mm in (tensorplay.mm, PLAIN, tensorplay.mm, PLAIN):
            left = a.copy() if isinstance(a, np.ndarray) else a
            out: Any = {"none": None, "left": left}.get(given_out, np.empty((m, n), np.float32))
            if given_out == "read-only":
                out.flags.writeable = False
            outcomes.append(_outcome(mm, left, b, out))
        context.close()
    assert outcomes[1:] == outcomes[:1] * 3
