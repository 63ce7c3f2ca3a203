"""Grouped products: the choice between one call of the library and a loop of plans, which is its caller's."""

from functools import lru_cache
from logging import getLogger

from tensorplay.backends.cublaslt.grouped_call import GroupedCall
from tensorplay.backends.cublaslt.grouped_limits import is_worthwhile
from tensorplay.backends.cublaslt.member import Member
from tensorplay.errors import KernelUnavailableError, LaunchError

__all__ = ["grouped_call"]

# Of different lists of sizes; what a call holds is small, and made anew in less time than its products take.
_MOST_CALLS = 256

_logger = getLogger("tensorplay")


@lru_cache(maxsize=_MOST_CALLS)
def grouped_call(members: tuple[Member, ...], dtype: str, ordinal: int, workspace_bytes: int) -> GroupedCall | None:
    """Return the call that does all products at once; None where one by one is faster, or the library cannot do it.

    The products are not empty, and all of one type. Nothing of it may happen under a graph capture.
    """
    if not is_worthwhile(dtype, members) or not all(member.is_short for member in members):
        return None
    try:
        return GroupedCall(members, dtype=dtype, ordinal=ordinal, workspace_bytes=workspace_bytes)
    except (KernelUnavailableError, LaunchError) as error:
        _logger.warning("groups of products run one by one: %s", error)
        return None
