"""What a person types and chooses in a form, as the values that the REST API takes: as `actions.js` makes them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qs

from tensorplay.service.file_names import RESULTS_PATTERN
from tensorplay.service.pages.form_call import Call
from tensorplay.service.problems import Problem

__all__ = ["Filled", "fields_of", "filled", "value_of"]

_LONGEST = 1 << 18
# The signatures that a page shows at most, and some.
_MOST_FIELDS = 600
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)

Fields = Mapping[str, Sequence[str]]


class Filled(NamedTuple):
    """A call with what was typed: its path below `api/v1/`, and its body, if any."""

    path: str
    body: bytes | None


def fields_of(body: bytes) -> Fields:
    """Return the fields of a form, each with all its values; a `Problem` for too large a form: 413."""
    if len(body) > _LONGEST:
        raise Problem(413, "too-large", "the form is larger than 256 KiB")
    try:
        return parse_qs(body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Problem(413, "too-many-values", f"the form has more than {_MOST_FIELDS} fields") from None


def filled(call: Call, fields: Fields) -> Filled:
    """Return a call with what was typed and chosen for it; a 422 `Problem` for what cannot be meant."""
    path = call.path
    if "{name}" in path:
        name = _one(fields, "name").strip()
        if re.fullmatch(RESULTS_PATTERN, name) is None:
            raise _invalid("a name of a file has letters, digits, `.`, `_` and `-`, no folders, and ends in .csv")
        path = path.replace("{name}", name)
    body = call.body
    if call.fields:
        body = (body or {}) | {name: value_of(kind, _one(fields, name)) for name, kind in call.fields.items()}
    if call.picks:
        body = (body or {}) | {"source": {"signatures": _signatures(fields.get("pick", ()))}}
    if body is None:
        return Filled(path, None)
    try:
        return Filled(path, json.dumps(body, allow_nan=False).encode())
    except ValueError:
        raise _invalid("a number that is none, or endless, is no value") from None


def value_of(kind: str, text: str) -> object:
    """Return the value that a text is meant as; None is the default of a number that was left out.

    Raises
    ------
    Problem
        422 for a number that is none.
    """
    stripped = text.strip()
    if kind == "boolean":
        return stripped == "true"
    if kind == "names":
        return [each for each in map(str.strip, text.split(",")) if each]
    if kind not in {"integer", "number"}:
        return text
    if not stripped:
        return None
    if _INTEGER.fullmatch(stripped):
        return int(stripped)
    if kind == "integer":
        raise _invalid("give a whole number")
    if _NUMBER.fullmatch(stripped):
        return float(stripped)
    raise _invalid("give a number, such as 0.02")


def _signatures(picks: Sequence[str]) -> list[dict[str, str]]:
    if not picks:
        raise _invalid("choose at least one signature")
    pairs = [each.partition(",") for each in picks]
    return [{"op": op, "params": params} for op, _, params in pairs]


def _one(fields: Fields, name: str) -> str:
    values = fields.get(name, ())
    if len(values) != 1:
        raise _invalid(f"the form needs one field `{name}`; load the page anew")
    return values[0]


def _invalid(detail: str) -> Problem:
    return Problem(422, "invalid", detail)
