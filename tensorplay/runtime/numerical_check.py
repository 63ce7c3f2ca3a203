"""The setting of the numerical check: on with tolerances by data type, off, or two tolerances of one's own."""

from tensorplay.runtime.setting_kind import Kind, boolean_of, decimal_of, real_of

__all__ = ["numerical_check", "tolerances"]

_ON, _OFF = "on", "off"


def tolerances(check: str) -> tuple[float, float] | None:
    """Return the absolute and relative tolerance that a value of the setting names; None for `on` and `off`."""
    if check in {_ON, _OFF}:
        return None
    atol, _, rtol = check.partition("_")
    return float(atol), float(rtol)


def numerical_check() -> Kind:
    """Return the kind whose values are `on`, `off` and `atol_rtol`; callers may give a bool or a pair too."""
    allowed = "on, off, or atol_rtol such as 1e-5_1e-5, both above 0 and finite"
    return Kind("check", allowed, _parse, _check)


def _check(value: object) -> str:
    if isinstance(value, bool):
        return _ON if value else _OFF
    if isinstance(value, str):
        return _parse(value)
    if not isinstance(value, tuple):
        raise TypeError(value)
    atol, rtol = map(real_of, value)
    if not (atol > 0 and rtol > 0):
        raise ValueError(value)
    return f"{atol!r}_{rtol!r}"


def _parse(text: str) -> str:
    if (word := boolean_of(text)) is not None:
        return _check(word)
    atol, _, rtol = text.partition("_")
    return _check((decimal_of(atol), decimal_of(rtol)))
