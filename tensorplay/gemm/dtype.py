"""The data types of a product, and the word that each has in an op name."""

from dataclasses import dataclass

from tensorplay.errors import SignatureError

__all__ = ["DTYPES", "DType", "dtype_called", "dtype_of_name", "dtype_of_word"]


@dataclass(frozen=True, slots=True)
class DType:
    """One data type of operands and result, with how it is multiplied.

    Attributes
    ----------
    name : str
        As NumPy, ml_dtypes and the array libraries spell it; `tf32` is float32 storage with TF32 products.
    word : str
        As op names and params spell it.
    itemsize : int
        Bytes of one element.
    unit_roundoff : float
        Largest relative error of rounding a real number to this type: what tolerances are made of.
    code : int
        Stands for the type in a problem's integer key; never reused.
    is_complex : bool
        Whether one element is a pair of reals.
    """

    name: str
    word: str
    itemsize: int
    unit_roundoff: float
    code: int
    is_complex: bool = False


DTYPES: tuple[DType, ...] = (
    DType("float32", "Float32", 4, 2.0**-24, 1),
    DType("tf32", "Tf32", 4, 2.0**-11, 2),
    DType("float64", "Float64", 8, 2.0**-53, 3),
    DType("float16", "Float16", 2, 2.0**-11, 4),
    DType("bfloat16", "BFloat16", 2, 2.0**-8, 5),
    DType("complex64", "Complex64", 8, 2.0**-24, 6, is_complex=True),
    DType("complex128", "Complex128", 16, 2.0**-53, 7, is_complex=True),
    DType("float8_e4m3fn", "Float8E4M3", 1, 2.0**-4, 8),
    DType("float8_e5m2", "Float8E5M2", 1, 2.0**-3, 9),
)

_BY_NAME = {dtype.name: dtype for dtype in DTYPES}
_BY_WORD = {dtype.word: dtype for dtype in DTYPES}
# What torch calls some of them besides.
_SHORT_NAMES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


def dtype_of_name(name: str) -> DType | None:
    """Return the type that array libraries call `name`, or None when products of it are not tuned."""
    return _BY_NAME.get(name)


def dtype_called(text: str) -> DType | None:
    """Return the type that a person means by its word, NumPy's name or torch's, in any case; None for no such."""
    name = text.casefold().removeprefix("torch.")
    name = _SHORT_NAMES.get(name, name)
    return next((dtype for dtype in DTYPES if name in {dtype.name, dtype.word.casefold()}), None)


def dtype_of_word(word: str) -> DType:
    """Return the type that op names call `word`; `SignatureError` when there is none."""
    try:
        return _BY_WORD[word]
    except KeyError:
        raise SignatureError(f"unknown data type {word!r} in an op name; known: {', '.join(_BY_WORD)}") from None
