"""Who makes the key of a host product's look-up: the extension `_layout_key`, where it was built.

It does in one call what takes seven attributes and a tuple, and is optional: asked for once, when this is imported.
"""

from collections.abc import Callable

from tensorplay.extensions import extension

__all__ = ["layout_key"]


_built = extension("tensorplay.ops._layout_key")

layout_key: Callable[[object, object, object], bytes | None] | None = None if _built is None else _built.layout_key
"""Returns what tells the layout of `a`, `b` and `out` from every other, or None for operands that Python is to look at.

None itself where the extension was not built, or was for another NumPy. Its keys are never equal to those that Python
makes, so that a layout may be known under both.
"""
