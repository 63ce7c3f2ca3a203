"""Who makes the key of a host product's look-up: the extension `_layout_key`, where it was built.

It does in one call what takes seven attributes and a tuple, and is optional: asked for once, when this is imported.
"""

from collections.abc import Callable

__all__ = ["layout_key"]


def _built() -> Callable[[object, object, object], bytes | None] | None:
    try:
        from tensorplay.ops import _layout_key  # noqa: PLC0415 - it need not be there
    except ImportError:
        return None
    return _layout_key.layout_key


layout_key = _built()
"""Returns what tells the layout of `a`, `b` and `out` from every other, or None for operands that Python is to look at.

None itself where the extension was not built, or was for another NumPy. Its keys are never equal to those that Python
makes, so that a layout may be known under both.
"""
