"""What a part has measured so far, as a file: saved after each item, so that a time limit takes little away."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Parts", "document_path", "merged_parts", "read_documents", "rounded", "saved"]

_PREFIX, _MERGED = "selection_part_", "selection.json"

Document = Mapping[str, Any]

Parts = dict[str, dict[str, dict[str, Any]]]
"""The rows of each part, by item."""


def document_path(folder: Path, part: str, slice_text: str | None = None) -> Path:
    """Return where the rows of a part are kept; those of a slice have a file of their own."""
    of_slice = "" if slice_text is None else f"_{slice_text.replace(':', '-')}"
    return folder / f"{_PREFIX}{part}{of_slice}.json"


def saved(path: Path, document: Document) -> None:
    """Write a document; whoever reads meanwhile sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(rounded(document), indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def rounded(value: Any) -> Any:
    """Return plain values with five digits: more than any of these clocks can say."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, Mapping):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return value


def read_documents(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """Return all documents in folders and what is below them, those of earlier runs first.

    A merged result counts as the documents that it was made of, so that later runs can be added to it.
    """
    found = sorted({path.resolve() for folder in folders for path in folder.rglob("*.json")})
    documents = []
    for path in found:
        if path.name == _MERGED:
            documents += _taken_apart(_read(path))
        elif path.name.startswith(_PREFIX):
            documents.append(_read(path))
    return sorted(documents, key=lambda document: str(document["metadata"]["date"]))


def merged_parts(documents: Sequence[Document]) -> Parts:
    """Return the rows of each part by item; of an item that was measured twice, the later row.

    Quick runs are passed over, as their figures mean nothing, unless all are quick.
    """
    slow = [document for document in documents if not document["metadata"]["quick"]]
    parts: Parts = {}
    for document in slow or documents:
        rows = parts.setdefault(document["part"], {})
        for row in document["rows"]:
            # A later row takes the place of the later one, too.
            rows.pop(row["item"], None)
            rows[row["item"]] = row
    return parts


def _taken_apart(merged: Document) -> list[dict[str, Any]]:
    settings = merged["settings"]
    return [
        {"part": part, "settings": {"merged": True}, "metadata": merged["metadata"], "rows": rows}
        for part, rows in settings["parts"].items()
    ]


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
