"""Strides in bytes, as NumPy's relatives count them, as strides in elements. Pure."""

__all__ = ["dense_strides", "element_strides"]


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array of that shape without gaps, stored by rows."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def element_strides(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return strides in elements; where one ends inside an element all are -1, which no product takes in place."""
    if any(step % itemsize for step in strides):
        return (-1,) * len(strides)
    return tuple(step // itemsize for step in strides)
