"""The page of errors lists every exception and warning, with its base."""

import inspect
import re
from collections.abc import Callable

from tensorplay import errors

Rows = Callable[..., list[list[str]]]


def _drawn(text: str) -> dict[str, set[str]]:
    """Return the tree of a text: each name, with the bases that are drawn."""
    drawn: dict[str, set[str]] = {}
    root = ""
    for branch, name, builtin in re.findall(r"^ *([├└]── )?(\w+(?:Error|Warning))(?: +\((\w+)\))?", text, re.MULTILINE):
        root = root if branch else name
        drawn[name] = {builtin or "Exception"} | ({root} if branch else set())
    return drawn


def _is(name: str, bases: set[str]) -> bool:
    mro = {kind.__name__ for kind in getattr(errors, name).__mro__}
    return bases <= mro


def test_the_tree_is_that_of_the_module(docs: Callable[[str], str]) -> None:
    tree = _drawn(docs("errors.md").partition("```text")[2].partition("```")[0])
    assert sorted(tree) == sorted(errors.__all__)
    assert [name for name, bases in tree.items() if not _is(name, bases)] == []


def test_the_tree_in_the_module_is_right_too() -> None:
    tree = _drawn(inspect.getdoc(errors) or "")
    assert sorted(tree) == sorted(errors.__all__)
    assert [name for name, bases in tree.items() if not _is(name, bases)] == []


def test_every_one_has_a_row(docs: Callable[[str], str], rows: Rows) -> None:
    text = docs("errors.md")
    listed = [row[0].strip("`") for head in ("Error", "Warning") for row in rows(text, head)]
    assert sorted(listed) == sorted(errors.__all__)
