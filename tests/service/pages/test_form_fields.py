import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.pages.form_call import Call
from tensorplay.service.pages.form_fields import fields_of, filled, value_of
from tensorplay.service.problems import Problem


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("boolean", "", False),
        ("integer", "12", 12),
        ("integer", " 12 ", 12),
        ("integer", "-1", -1),
        ("integer", "", None),
        ("number", "", None),
        ("number", "3", 3),
        ("number", "0.02", 0.02),
        ("number", ".5", 0.5),
        ("number", "2.", 2.0),
        ("number", "1e-3", 0.001),
        ("names", "a, b,,c ", ["a", "b", "c"]),
        ("names", "", []),
        ("choice", "off", "off"),
        ("text", " as it is ", " as it is "),
        ("anything", "x", "x"),
    ],
)
def test_a_text_is_meant_as_its_kind_says(kind: str, text: str, value: object) -> None:
    found = value_of(kind, text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("text", ["x", "1_0", "nan", "inf", "-Infinity", "0x10", "٣", "1,5", "1 0", "9" * 5000, "--1"])
def test_what_is_no_number_is_refused(kind: str, text: str) -> None:
    with pytest.raises(Problem, match="give a"):
        value_of(kind, text)


@pytest.mark.parametrize("text", ["1.5", "1e3", "2."])
def test_what_is_not_whole_is_no_integer(text: str) -> None:
    with pytest.raises(Problem, match="whole number"):
        value_of("integer", text)


@given(st.sampled_from(["integer", "number"]), st.floats().map(str) | st.integers().map(str) | st.text(max_size=20))
def test_any_text_is_a_number_or_refused(kind: str, text: str) -> None:
    with suppress(Problem):
        value = value_of(kind, text)
        assert value is None or (isinstance(value, int | float) and math.isclose(float(text), value))


def test_an_endless_number_is_refused() -> None:
    call = Call(method="PUT", path="settings/min_gain", fields={"value": "number"})
    with pytest.raises(Problem, match="endless"):
        filled(call, {"value": ["1e999"]})


def test_what_is_typed_joins_what_the_button_says() -> None:
    call = Call(method="POST", path="files/{name}/save", body={"a": 1}, fields={"device": "text"})
    made = filled(call, {"name": [" x.csv "], "device": ["0"]})
    assert (made.path, json.loads(made.body or b"")) == ("files/x.csv/save", {"a": 1, "device": "0"})
    assert filled(Call(method="DELETE", path="jobs/1"), {"x": ["y"]}).body is None


def test_the_chosen_signatures_are_the_source() -> None:
    call = Call(method="POST", path="jobs", body={"kind": "tune"}, picks=True)
    made = filled(call, {"pick": ["op,params", "op"]})
    signatures = [{"op": "op", "params": "params"}, {"op": "op", "params": ""}]
    assert json.loads(made.body or b"") == {"kind": "tune", "source": {"signatures": signatures}}


@pytest.mark.parametrize("name", ["", "x", "../x.csv", "a/b.csv", ".csv", ".x.csv", "x.csv\n.csv", "%2e.csv", "é.csv"])
def test_what_is_no_name_of_a_file_is_refused(name: str) -> None:
    with pytest.raises(Problem, match=r"ends in \.csv"):
        filled(Call(method="POST", path="files/{name}/save"), {"name": [name]})


@pytest.mark.parametrize("fields", [{}, {"value": []}, {"value": ["1", "2"]}])
def test_a_field_is_there_once(fields: Any) -> None:
    with pytest.raises(Problem, match="one field `value`"):
        filled(Call(method="PUT", path="settings/x", fields={"value": "text"}), fields)


@given(st.binary(max_size=300))
def test_any_bytes_are_fields(body: bytes) -> None:
    for name, values in fields_of(body).items():
        assert name.isascii() or name.encode()
        assert values and all(each.encode() is not None for each in values)
