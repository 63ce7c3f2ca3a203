"""Running one part in this process: its items one after another, its document saved after each."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from harness.cuda_machine import clocks, libraries
from harness.machine import metadata as machine_facts

from selection.document import Parts, document_path, merged_parts, read_documents, saved
from selection.figures import PARTS
from selection.setting import Setting
from selection.shapes import parse_slice, sliced

__all__ = ["QUICK_ITEMS", "expected_items", "in_order", "run_part", "wanted_items"]

QUICK_ITEMS = {
    "shapes": "::25",
    "fresh": "::25",
    "decode": "0:1",
    "again": "35:36",
    "quality": "35:36",
    "wrong": "0:1",
}
"""What a quick run takes of each part."""

_PACKAGES = ("cupy-cuda13x", "jax", "jaxlib", "jax-cuda13-plugin", "cuda-core")


def wanted_items(part: str, setting: Setting) -> list[str]:
    """Return the items of a part that a run is to measure."""
    module = _module(part)
    default = parse_slice(QUICK_ITEMS[part]) if setting.quick else getattr(module, "DEFAULT", None)
    wanted = None if setting.wanted is None else parse_slice(setting.wanted)
    items = sliced(module.items(setting), wanted, default)
    return items if setting.share is None else setting.share.of(items)


def expected_items(setting: Setting) -> dict[str, int]:
    """Return how many items a complete result has, by part."""
    modules = {part: _module(part) for part in PARTS}
    return {
        part: len(sliced(module.items(setting), None, getattr(module, "DEFAULT", None)))
        for part, module in modules.items()
    }


def in_order(parts: Parts, setting: Setting) -> Parts:
    """Return the rows of each part in the order of its items, whoever measured which; those of no item come last."""
    ordered: Parts = {}
    for part, rows in parts.items():
        listed = [item for item in _module(part).items(setting) if item in rows]
        ordered[part] = {item: rows[item] for item in dict.fromkeys((*listed, *rows))}
    return ordered


def run_part(
    part: str,
    setting: Setting,
    folder: Path,
    *,
    resume: bool = False,
    seconds: float = float("inf"),
    now: Callable[[], float] = time.monotonic,
    facts_of_device: Callable[[], Mapping[str, object]] = libraries,
) -> int:
    """Measure a part's items and keep their rows in its document; return how many were left out.

    Parameters
    ----------
    resume : bool
        Whether what the folder's documents have already is kept, and not measured again.
    seconds : float
        No item is begun that would end later, as long as the longest so far took. Where a part measures several at
        once, what it has measured is kept.
    """
    module = _module(part)
    batch = getattr(module, "BATCH", 1)
    path = document_path(folder, part, setting.wanted)
    kept = json.loads(path.read_text(encoding="utf-8"))["rows"] if resume and path.exists() else []
    done = set(merged_parts(read_documents([folder])).get(part, {})) if resume else set()
    wanted = [item for item in wanted_items(part, setting) if item not in done]
    document: dict[str, Any] = {
        "part": part,
        "settings": _plain(setting),
        "metadata": machine_facts() | {"quick": setting.quick, "clocks_before": clocks()},
        "rows": kept,
    }
    already = len(kept)
    begin = last = now()
    longest = 0.0
    for row in module.measured(setting, wanted) if wanted else ():
        longest, last = max(longest, now() - last), now()
        document["rows"].append(row)
        document["metadata"]["clocks_after"] = clocks()
        saved(path, document)
        sys.stderr.write(f"{part} {len(document['rows'])}: {row['item']} ({now() - begin:.0f} s)\n")
        is_batch_done = (len(document["rows"]) - already) % batch == 0
        if is_batch_done and now() - begin + longest > seconds:
            break
    document["metadata"]["libraries"] = dict(facts_of_device()) | {"further packages": _further_packages()}
    saved(path, document)
    return len(wanted) - (len(document["rows"]) - already)


def _module(part: str) -> Any:
    return import_module(f"selection.part_{part}")


def _plain(setting: Setting) -> dict[str, object]:
    return {
        "search_seconds": setting.search_seconds,
        "long_seconds": setting.long_seconds,
        "rounds": setting.rounds,
        "repeats": setting.repeats,
        "problems": setting.problems,
        "without": sorted(setting.without),
    }


def _further_packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
