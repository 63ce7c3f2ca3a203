"""Names that a service may be addressed by, as a program, the command line or the environment gives them."""

import ipaddress
import re
from collections.abc import Iterable, Mapping

from tensorplay.errors import SettingError

__all__ = ["HOSTS_VARIABLE", "checked_hosts", "hosts_of"]

HOSTS_VARIABLE = "TENSORPLAY_HOSTS"
"""Holds names with commas between."""

_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_])?", re.ASCII)


def checked_hosts(names: Iterable[str]) -> frozenset[str]:
    """Return names as a `Host` header is compared with them: in lower case, addresses without brackets.

    Raises
    ------
    SettingError
        For what is no name of a host, such as one with a port or a wildcard.
    """
    return frozenset(_checked(name) for name in names)


def hosts_of(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the names that the environment gives; `SettingError` when one is none."""
    given = [name.strip() for name in environ.get(HOSTS_VARIABLE, "").split(",")]
    try:
        return checked_hosts(name for name in given if name)
    except SettingError as error:
        raise SettingError(f"{HOSTS_VARIABLE}: {error}") from None


def _checked(name: str) -> str:
    # A dot at the end says that nothing is left out: the name is the same.
    lower = name.lower().removesuffix(".")
    if _NAME.fullmatch(lower) and ".." not in lower:
        return lower
    try:
        # A scope names an interface of this machine, which no other one means.
        if "%" not in lower:
            return str(ipaddress.IPv6Address(lower.removeprefix("[").removesuffix("]")))
    except ValueError:
        pass
    raise SettingError(
        f"{name!r} is no name of a host; allowed: a name or an address without port, path and wildcard, "
        "such as ml.example"
    )
