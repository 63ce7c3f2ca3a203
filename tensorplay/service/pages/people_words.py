"""What people are told of a change, and of one that was refused: the API's words are for programs."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["WORDS", "done_text", "place_words", "refusal_words", "told_of"]

WORDS = {
    "load": "Loaded: {merged} merged, {replaced} replaced, {kept} kept as they were, {pinned} pinned, "
    "{rejected} lines rejected.",
    "load-nothing": "Loaded: the winners in memory are those of the file already.",
    "save": "Saved: {winners} winners in the file, {added} of them new, {replaced} replaced, "
    "{kept} written by others kept.",
    "exists": "There is a file of that name: use “Save” in its row, which merges, or choose another name.",
    "changed": "It has changed since this page showed it. Load the page again, then press once more.",
    "token-needed": "Changing something needs the token.",
}
"""Of what was done by the end of its path, with the counts that the API answers, and of refusals by their code."""

_COUNTED = re.compile(r"files/[^/?]+/(load|save)")
_COUNTS = {kind: tuple(re.findall(r"\{(\w+)\}", WORDS[kind])) for kind in ("load", "save")}
_TOLD = re.compile(r"(load|save)((?:\.[0-9]{1,12}){4,5})", re.ASCII)
_SHOULD = re.compile(r"(?:Input|String|Value|List|Dictionary) should ")
_PATTERNS = (
    (re.compile(r"must match pattern .*", re.DOTALL), "has letters, or a form, that it may not have"),
    (re.compile(r"must be a valid integer.*", re.DOTALL), "must be a whole number"),
    (re.compile(r"must be a valid number.*", re.DOTALL), "must be a number"),
    (re.compile(r"must be a valid boolean.*", re.DOTALL), "must be true or false"),
    (re.compile(r"must be greater than or equal to (\S+)"), r"must be \1 or more"),
    (re.compile(r"must be less than or equal to (\S+)"), r"must be \1 or less"),
    (re.compile(r"Extra inputs are not permitted"), "is not known here"),
    (re.compile(r"Field required"), "is missing"),
    (re.compile(r"'([^']*)'"), r"\1"),
)


def told_of(path: str, document: Mapping[str, Any]) -> str | None:
    """Return the counts that the API answered a change with, as one word of an address; None where it counts none."""
    found = _COUNTED.fullmatch(path)
    counts = [document.get(name) for name in _COUNTS[found[1]]] if found else []
    if found is None or not all(isinstance(each, int) and each >= 0 for each in counts):
        return None
    return ".".join([found[1], *map(str, counts)])


def done_text(told: str) -> str:
    """Return what a page says after a change, by that word of its address: “Done.”, and the counts where it has any."""
    found = _TOLD.fullmatch(told)
    if found is None:
        return "Done."
    names, counts = _COUNTS[found[1]], found[2][1:].split(".")
    if len(names) != len(counts):
        return "Done."
    if found[1] == "load" and not any(map(int, counts)):
        return WORDS["load-nothing"]
    return WORDS[found[1]].format_map({name: f"{int(each):,}" for name, each in zip(names, counts, strict=True)})


def refusal_words(code: str, detail: str) -> str:
    """Return what a person is told of a refusal of the API."""
    return WORDS.get(code, detail)


def place_words(place: Sequence[object], message: str) -> tuple[str, str]:
    """Return what does not fit and why, of an error of the API: no pattern, and no word of the library that checks."""
    text = _SHOULD.sub("must ", message)
    for pattern, words in _PATTERNS:
        text = pattern.sub(words, text)
    return " ".join(map(str, place[1:])), text
