"""Over recorded files every change is refused, by the context itself, whoever asks."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import TensorPlayError
from tensorplay.gemm import parse_signature
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.service.unchanging import Unchanging

OP, PARAMS = "GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_dev0"
GIVEN: dict[str, Any] = {
    "op": OP,
    "params": PARAMS,
    "kernel": "Default",
    "device": "0",
    "path": "x.csv",
    "data": b"",
    "name": "tuning",
    "value": True,
    "problem": parse_signature(OP, PARAMS),
}


@pytest.mark.parametrize("name", [name for name in vars(Unchanging) if not name.startswith("_")])
def test_a_change_of_recorded_files_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "r.csv"
    text = f"Validator,A,b\n{OP},{PARAMS},Default,0.5\n"
    path.write_text(text, encoding="utf-8")
    method = getattr(RecordedContext([str(path)]), name)
    if name == "write_file":
        assert method() is False
    else:
        needed = [
            GIVEN[each.name]
            for each in inspect.signature(method).parameters.values()
            if each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        with pytest.raises(TensorPlayError):
            method(*needed)
    assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_lines_and_winners_of_recorded_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"Validator,A,b\n{OP},{PARAMS},Default,0.5\nnonsense\n", encoding="utf-8")
    context = RecordedContext([str(path)])
    assert [line.number for fault in context.file_faults() for line in fault.bad_lines] == [3]
    assert [past.origin for past in context.past_winners(OP, PARAMS)] == ["file"]
    assert context.past_winners(OP, PARAMS + "_ws64") == []
    assert context.first_choices([parse_key()]) == {}
    assert [each.kernel for each in context.recorded_of([parse_key()])] == ["Default"]
    assert context.calls_by_signature() == {}


def parse_key() -> Any:
    from tensorplay.gemm import Signature

    return Signature(OP, PARAMS)
