import copy
import inspect
import pickle
import re

import pytest

from tensorplay import errors
from tensorplay.errors import TensorPlayError, TensorPlayWarning

CLASSES = [value for _, value in inspect.getmembers(errors, inspect.isclass)]
LINE = re.compile(r"    (?P<branch>[├└]── )?(?P<name>\w+)(?: +\((?P<base>\w+)\))?(?: .*)?")


def drawn_tree() -> dict[str, tuple[str, ...]]:
    """Return the bases of each class as the docstring draws them."""
    drawing = (errors.__doc__ or "").partition("::\n")[2].partition("\n\nAll")[0]
    tree: dict[str, tuple[str, ...]] = {}
    root = ""
    for line in drawing.strip("\n").splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, line
        if match["branch"] is None:
            root = match["name"]
            tree[root] = (match["base"] or "Exception",)
        else:
            tree[match["name"]] = (root, *([match["base"]] if match["base"] else []))
    return tree


def test_the_drawn_tree_is_the_classes() -> None:
    assert drawn_tree() == {cls.__name__: tuple(base.__name__ for base in cls.__bases__) for cls in CLASSES}


def test_every_class_is_exported() -> None:
    assert sorted(errors.__all__) == sorted(cls.__name__ for cls in CLASSES)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_survives_the_way_to_another_process(cls: type[Exception]) -> None:
    error = cls("what was wrong, what was given, what is allowed")
    error.add_note("seen in a worker")
    for returned in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - made here
        assert type(returned) is cls
        assert returned.args == error.args
        assert str(returned) == str(error)
        assert returned.__notes__ == error.__notes__


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_everything_is_caught_by_one_of_two_names(cls: type[Exception]) -> None:
    assert issubclass(cls, (TensorPlayError, TensorPlayWarning))
    assert issubclass(cls, TensorPlayWarning) == issubclass(cls, Warning)
