"""The page of errors lists every exception and warning, with its base."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path

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


def test_a_base_says_when_it_is_raised_itself_if_it_is(docs: Callable[[str], str], rows: Rows, root: Path) -> None:
    """A class that some module raises or warns with, and that has subclasses, is not called a mere base."""
    sources = [file.read_text(encoding="utf-8") for file in root.glob("tensorplay/**/*.py")]
    text = docs("errors.md")
    said = {row[0].strip("`"): " ".join(row[1:]) for head in ("Error", "Warning") for row in rows(text, head)}
    for name in ("TensorPlayError", "TensorPlayWarning"):
        is_raised = any(re.search(rf"raise {name}\(|warn\(.*\b{name}\)", source) for source in sources)
        assert is_raised == ("Itself: " in said[name]), name
