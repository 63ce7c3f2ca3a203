"""Views: what a product needs to know of an array in device memory, whatever library it belongs to. Pure."""

from typing import NamedTuple

__all__ = ["DeviceView", "Stored", "span", "stored"]

Shape = tuple[int, ...]


class DeviceView(NamedTuple):
    """An array in device memory, as its library described it.

    Attributes
    ----------
    pointer : int
        Address of the first element.
    shape : tuple of int
        Sizes, outermost first.
    strides : tuple of int
        Steps in *elements*, outermost first.
    dtype : str
        As NumPy and ml_dtypes spell it.
    device : int
        Ordinal of the device that holds it.
    stream : int
        Handle of the stream on which the library works with it.
    is_readonly : bool
        Whether it may not be written to.
    owner : object
        What must live as long as the memory is read, beside the array itself.
    """

    pointer: int
    shape: Shape
    strides: Shape
    dtype: str
    device: int
    stream: int
    is_readonly: bool = False
    owner: object = None

    @property
    def transposed(self) -> "DeviceView":
        """Return the view with its last two dimensions exchanged."""
        shape, strides = self.shape, self.strides
        return self._replace(
            shape=(*shape[:-2], shape[-1], shape[-2]), strides=(*strides[:-2], strides[-1], strides[-2])
        )

    def expanded(self, shape: Shape) -> "DeviceView":
        """Return the view broadcast to a shape that it fits, by steps of 0."""
        missing = len(shape) - len(self.shape)
        kept = zip(self.shape, shape[missing:], self.strides, strict=True)
        steps = tuple(step if size == wanted else 0 for size, wanted, step in kept)
        return self._replace(shape=shape, strides=(0,) * missing + steps)

    def folded(self, count: int) -> "DeviceView | None":
        """Return the view with its first `count` dimensions as one, None when no single step walks them.

        Without any such dimension one of size 1 is put there.
        """
        size, step = 1, 0
        for length, stride in zip(reversed(self.shape[:count]), reversed(self.strides[:count]), strict=True):
            if length == 1:
                continue
            if size > 1 and stride != size * step:
                return None
            if size == 1:
                step = stride
            size *= length
        return self._replace(shape=(size, *self.shape[count:]), strides=(step, *self.strides[count:]))


class Stored(NamedTuple):
    """How a matrix lies in memory: rows of a matrix or, when transposed, of the one it is the transposed view of.

    `ld` is the number of elements from one stored row to the next, None when rows are dense.
    """

    transposed: bool
    ld: int | None


def stored(shape: Shape, strides: Shape) -> Stored | None:
    """Return how a matrix lies, None for the strides of none: negative, broadcast, stepping over elements.

    Steps of a dimension of size 1 mean nothing and are not read.
    """
    rows, columns = shape
    by_rows = _leading_dimension(strides[0], strides[1], rows, columns)
    by_columns = _leading_dimension(strides[1], strides[0], columns, rows)
    if by_rows == columns:
        return Stored(transposed=False, ld=None)
    if by_columns == rows:
        return Stored(transposed=True, ld=None)
    if by_rows is not None:
        return Stored(transposed=False, ld=by_rows)
    if by_columns is not None:
        return Stored(transposed=True, ld=by_columns)
    return None


def span(shape: Shape, strides: Shape) -> int:
    """Return the elements from the first to the last of a view without negative steps, both included; 0 of none."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def _leading_dimension(step: int, within: int, count: int, length: int) -> int | None:
    if length > 1 and within != 1:
        return None
    if count == 1:
        return length
    return step if step >= length else None
