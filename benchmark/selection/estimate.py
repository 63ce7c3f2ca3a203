"""How long a part will take, before it is begun: device time is short, and one command even shorter."""

from selection.part_again import BATCH
from selection.setting import Setting

__all__ = ["estimated_seconds", "plan_text", "shortest_seconds"]

# Of a process: interpreter, torch, the CUDA context and the libraries' first calls.
_START = 8.0
# Of each search: everything before and after it.
_AROUND = 0.3
# Of a shape's comparison without the search: JAX's compiler, nvmath's autotune, captures, rounds.
_COMPARISON = 3.0
_CEILINGS = 5.0
_FRESH, _DECODE, _COMPARED, _CHUNK = 0.8, 0.5, 0.6, 21.0


def estimated_seconds(part: str, items: int, setting: Setting) -> float:
    """Return about how many seconds a part takes for so many items, its process's start included."""
    search = setting.search_seconds + _AROUND
    each = {
        "shapes": search + _COMPARISON,
        "fresh": _FRESH,
        "decode": search + _DECODE,
        "again": setting.repeats * search + _COMPARED + 2 * _START / BATCH,
        "quality": search + setting.long_seconds + _AROUND + _COMPARED,
        "wrong": _CHUNK,
    }[part]
    return _START + (_CEILINGS if part in {"shapes", "decode"} else 0.0) + items * each


def shortest_seconds(part: str, items: int, setting: Setting) -> float:
    """Return about how many seconds a part of so many items takes before it has anything to keep."""
    return estimated_seconds(part, min(items, BATCH) if part == "again" else 1, setting)


def plan_text(counts: dict[str, int], setting: Setting) -> str:
    """Return a line a part, and the sum."""
    seconds = {part: estimated_seconds(part, count, setting) for part, count in counts.items()}
    lines = [f"{part:8} {count:4} items  about {seconds[part]:5.0f} s" for part, count in counts.items()]
    return "\n".join([*lines, f"all together about {sum(seconds.values()):.0f} s"])
