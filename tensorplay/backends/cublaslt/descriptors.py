"""Objects of cuBLASLt that must be destroyed: each is owned by one Python object, and counted while it lives."""

import weakref
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

from tensorplay.backends.cublaslt.attributes import (
    Attribute,
    LayoutAttribute,
    OperationAttribute,
    PreferenceAttribute,
    get_attribute,
    set_attribute,
)
from tensorplay.backends.cublaslt.library import cublaslt

__all__ = ["MatmulDescriptor", "MatrixLayout", "Preference", "live_descriptors"]

# Adding to and removing from a set are atomic; counting in a dict would not be.
_live: set[tuple[str, int]] = set()


def live_descriptors() -> Counter[str]:
    """Return how many objects of each kind exist, for whoever looks for leaks."""
    return Counter(kind for kind, _ in list(_live))


class _Owned:
    """One library object: destroyed with its owner, or earlier by `close`; host memory only, so at any time."""

    kind: ClassVar[str]

    def __init__(self, handle: int, destroy: Callable[[int], None]) -> None:
        self.handle = handle
        mark = (self.kind, handle)
        _live.add(mark)
        self.close = weakref.finalize(self, _destroy, destroy, mark)
        # At the interpreter's end the library may be unloaded already.
        self.close.atexit = False


def _destroy(destroy: Callable[[int], None], mark: tuple[str, int]) -> None:
    # Taken off the list first: the library may give the same address to another thread at once.
    _live.discard(mark)
    destroy(mark[1])


class MatmulDescriptor(_Owned):
    """What is computed: types, transposes, epilogue."""

    kind = "matmul descriptor"

    def __init__(self, compute_type: int, scale_type: int) -> None:
        lt = cublaslt()
        super().__init__(lt.matmul_desc_create(compute_type, scale_type), lt.matmul_desc_destroy)
        self._set = lt.matmul_desc_set_attribute
        self._get = lt.matmul_desc_get_attribute

    def __setitem__(self, attribute: OperationAttribute, value: int) -> None:
        set_attribute(self._set, self.handle, attribute, value)

    def __getitem__(self, attribute: OperationAttribute) -> int:
        return get_attribute(self._get, self.handle, attribute)


class MatrixLayout(_Owned):
    """How one operand lies in memory, column-major."""

    kind = "matrix layout"

    def __init__(self, data_type: int, rows: int, columns: int, ld: int, *, batch: int = 1, stride: int = 0) -> None:
        lt = cublaslt()
        super().__init__(lt.matrix_layout_create(data_type, rows, columns, ld), lt.matrix_layout_destroy)
        self._get = lt.matrix_layout_get_attribute
        if batch > 1:
            self._set(LayoutAttribute.BATCH_COUNT, batch)
            self._set(LayoutAttribute.STRIDED_BATCH_OFFSET, stride)

    def __getitem__(self, attribute: LayoutAttribute) -> int:
        return get_attribute(self._get, self.handle, attribute)

    def _set(self, attribute: Attribute, value: int) -> None:
        set_attribute(cublaslt().matrix_layout_set_attribute, self.handle, attribute, value)


class Preference(_Owned):
    """What a heuristic query prefers."""

    kind = "preference"

    def __init__(self, *, workspace_bytes: int, reduction_mask: int, alignment: int) -> None:
        lt = cublaslt()
        super().__init__(lt.matmul_preference_create(), lt.matmul_preference_destroy)
        self._get = lt.matmul_preference_get_attribute
        wanted = {
            PreferenceAttribute.MAX_WORKSPACE_BYTES: workspace_bytes,
            PreferenceAttribute.REDUCTION_SCHEME_MASK: reduction_mask,
            PreferenceAttribute.MIN_ALIGNMENT_A_BYTES: alignment,
            PreferenceAttribute.MIN_ALIGNMENT_B_BYTES: alignment,
            PreferenceAttribute.MIN_ALIGNMENT_C_BYTES: alignment,
            PreferenceAttribute.MIN_ALIGNMENT_D_BYTES: alignment,
        }
        for attribute, value in wanted.items():
            set_attribute(lt.matmul_preference_set_attribute, self.handle, attribute, value)

    def __getitem__(self, attribute: PreferenceAttribute) -> int:
        return get_attribute(self._get, self.handle, attribute)
