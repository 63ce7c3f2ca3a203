r"""The text of results and untuned files.

History of the results format, whose generation the validator `TP_TUNABLEOP_FORMAT` names:

1. `Validator,name,value` lines, the value running to the end of the line, and
   `op,params,kernel,milliseconds` lines, of which the last one of an op and params counts. Milliseconds may be
   missing where the line is ended. `#` starts a comment line. UTF-8, a byte order mark allowed.

The untuned format has no generations: `op,params` lines and comments.

Only `\n` and `\r\n` end a line. A line that cannot be read costs that line only. The last line may have been cut
while it was written: without its line end it counts only where no cut could have made another signature or
kernel of it, that is when the milliseconds are there.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from heapq import merge
from io import BytesIO
from itertools import islice
from sys import intern
from typing import NamedTuple

from tensorplay.database.entries import Entries, Raw
from tensorplay.database.record import Entry, Validator, check_entry, check_signature, check_validator
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature
from tensorplay.gemm.signature import OP_PREFIX

__all__ = [
    "FORMAT_VALIDATOR",
    "VALIDATOR_START",
    "BadLine",
    "ParsedResults",
    "ParsedUntuned",
    "each_line",
    "each_untuned_line",
    "each_validator",
    "format_entry",
    "format_results",
    "format_untuned_line",
    "formatted_results",
    "is_same_as_text",
    "parse_results",
    "parse_untuned",
]

FORMAT_VALIDATOR = Validator("TP_TUNABLEOP_FORMAT", "1")
"""Names the generation of the format that this package reads and writes; every build has it."""

VALIDATOR_START = b"Validator,"
"""How a validator's line starts."""

_VALIDATOR = VALIDATOR_START.decode()
# No sign, no blank, no name of infinity, and bounded: what `float` alone would accept is far more.
_TIME = re.compile(r"[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?")
_LONGEST_REASON = 300
_SLICE = 1024


class BadLine(NamedTuple):
    """A line that could not be read.

    Attributes
    ----------
    number : int
        Of the line, from 1.
    raw : bytes
        Its bytes, without the line end.
    reason : str
        What was wrong, what is allowed.
    path : str
        The file; empty when no file was read.
    """

    number: int
    raw: bytes
    reason: str
    path: str = ""

    @property
    def text(self) -> str:
        """Return the line as printable text; bytes that are not UTF-8 become backslash escapes."""
        return self.raw.decode(errors="backslashreplace")


class ParsedResults(NamedTuple):
    """What a results file says, in the file's order; a signature may have several entries, of which the last counts.

    Equal validators are given once. Contradictory ones are all there, for the comparison to name them.
    """

    validators: tuple[Validator, ...]
    entries: Entries
    comments: tuple[str, ...]
    bad_lines: tuple[BadLine, ...]

    @property
    def is_blank(self) -> bool:
        """Return whether there is nothing but comments and blank lines: a new file."""
        return not (self.validators or self.entries or self.bad_lines)


class ParsedUntuned(NamedTuple):
    """What an untuned file says: each signature once, in the file's order."""

    signatures: tuple[Signature, ...]
    bad_lines: tuple[BadLine, ...]


def _lines(text: str | bytes) -> Iterator[bytes]:
    # Lone surrogates have no UTF-8, so a text that holds them gives lines that are not UTF-8 either.
    data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    # BytesIO splits at b"\n" alone; str.splitlines would also split at NUL's neighbours, U+0085 and U+2028.
    return BytesIO(data.removeprefix(codecs.BOM_UTF8))


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise RecordError(f"byte {error.start + 1} is not UTF-8") from None


def _bad_line(number: int, raw: bytes, error: RecordError) -> BadLine:
    return BadLine(number, raw.removesuffix(b"\n").removesuffix(b"\r"), str(error)[:_LONGEST_REASON])


def _is_blank(line: str) -> bool:
    return not line.strip(" \t")


def _is_comment(line: str) -> bool:
    return line.lstrip(" \t").startswith("#")


def _milliseconds(text: str) -> float:
    if _TIME.fullmatch(text) is None:
        raise RecordError(f"time {text!r} is no number; allowed: milliseconds from 0 up, with a decimal point")
    return float(text)


def _parse_entry(line: str, *, is_ended: bool) -> Entry:
    fields = line.split(",", 4)
    if len(fields) == 4:
        op, params, kernel, time = fields
        # Few ops and kernels stand in many lines: one string each is most of the memory saved.
        return check_entry(Entry(intern(op), params, intern(kernel), _milliseconds(time)))
    if len(fields) == 3:
        if not is_ended:
            raise RecordError("the last line has three fields and no line end: it may be cut")
        op, params, kernel = fields
        return check_entry(Entry(intern(op), params, intern(kernel), 0.0))
    count = "five or more" if len(fields) > 4 else len(fields)
    raise RecordError(f"{count} fields; allowed: op,params,kernel and milliseconds")


def _parse_validator(line: str) -> Validator:
    fields = line.split(",", 2)
    if len(fields) < 3:
        raise RecordError("a validator without a value; allowed: Validator,name,value")
    return check_validator(Validator(fields[1], fields[2]))


def parse_results(text: str | bytes) -> ParsedResults:
    """Return what a results file says; no content raises, and text and its UTF-8 bytes give the same."""
    validators: dict[Validator, None] = {}
    entries = Entries()
    comments: list[str] = []
    bad_lines: list[BadLine] = []
    for each in each_line(text):
        if isinstance(each, Entry):
            entries.append(each)
        elif isinstance(each, Validator):
            validators[each] = None
        elif isinstance(each, BadLine):
            bad_lines.append(each)
        else:
            comments.append(each)
    return ParsedResults(tuple(validators), entries, tuple(comments), tuple(bad_lines))


def each_line(text: str | bytes) -> Iterator[Entry | Validator | BadLine | str]:
    """Yield what each line of a results file says, a comment as text, and nothing for a blank line; none raises."""
    for number, raw in enumerate(_lines(text), 1):
        try:
            line = _decoded(raw)
            if line.startswith(OP_PREFIX):
                yield _parse_entry(line, is_ended=raw.endswith(b"\n"))
            elif line.startswith(_VALIDATOR):
                yield _parse_validator(line)
            elif _is_comment(line):
                yield line
            elif not _is_blank(line):
                raise RecordError(f"starts neither with {OP_PREFIX!r} nor with {_VALIDATOR!r}")  # noqa: TRY301 - one exit
        except RecordError as error:
            yield _bad_line(number, raw, error)


def each_validator(data: bytes) -> Iterator[Validator]:
    """Yield the validators of a results file alone, for whoever wants to know first whether it is this build's."""
    for raw in _lines(data):
        if raw.startswith(VALIDATOR_START):
            try:
                yield _parse_validator(_decoded(raw))
            except RecordError:
                continue


def _format_time(milliseconds: float) -> str:
    # Adding zero makes -0.0 positive. Six digits are more than any clock gives, and keep the shortest text short.
    text = repr(float(f"{float(milliseconds) + 0.0:.6g}"))
    return format(Decimal(text), "f") if "e" in text else text


def is_same_as_text(one: Raw, other: Raw) -> bool:
    """Return whether both have the same line: a time that was measured has digits that a file does not keep."""
    return one[:3] == other[:3] and _format_time(one[3]) == _format_time(other[3])


def format_entry(entry: Entry) -> str:
    """Return the line of a winner, ended; the time has six significant digits, a point and never an exponent."""
    return _line(entry)


def _line(entry: Raw) -> str:
    op, params, kernel, time_ms = entry
    return f"{op},{params},{kernel},{_format_time(time_ms)}\n"


def format_results(validators: Iterable[Validator], entries: Iterable[Raw], comments: Iterable[str] = ()) -> str:
    """Return a whole file: comments, validators as given, entries sorted by op and params."""
    return "".join(formatted_results(validators, entries, comments))


def formatted_results(
    validators: Iterable[Validator], entries: Iterable[Raw], comments: Iterable[str] = ()
) -> Iterator[str]:
    """Yield the lines of a whole file, as `format_results` returns it."""
    yield from (f"{comment}\n" for comment in comments)
    yield from (f"{_VALIDATOR}{name},{value}\n" for name, value in validators)
    yield from map(_line, _sorted(entries))


def _sorted(entries: Iterable[Raw]) -> Iterator[Raw]:
    # One sort of fifty thousand would let no other thread run for a tenth of a second. Plain tuples, as in `Entries`.
    iterator, runs = (entry[:] for entry in entries), []
    while run := sorted(islice(iterator, _SLICE)):
        runs.append(run)
    return merge(*runs)


def parse_untuned(text: str | bytes) -> ParsedUntuned:
    """Return what an untuned file says; no content raises."""
    signatures: dict[Signature, None] = {}
    bad_lines: list[BadLine] = []
    for each in each_untuned_line(text):
        if isinstance(each, BadLine):
            bad_lines.append(each)
        else:
            signatures[each] = None
    return ParsedUntuned(tuple(signatures), tuple(bad_lines))


def each_untuned_line(text: str | bytes) -> Iterator[Signature | BadLine]:
    """Yield what each line of an untuned file says, and nothing for comments and blank lines; none raises."""
    for number, raw in enumerate(_lines(text), 1):
        try:
            line = _decoded(raw)
            if not (_is_blank(line) or _is_comment(line)):
                yield _parse_untuned_line(line, is_ended=raw.endswith(b"\n"))
        except RecordError as error:
            yield _bad_line(number, raw, error)


def _parse_untuned_line(line: str, *, is_ended: bool) -> Signature:
    fields = line.split(",", 2)
    if len(fields) != 2:
        raise RecordError(f"{'one field' if len(fields) < 2 else 'three or more fields'}; allowed: op,params")
    if not is_ended:
        raise RecordError("the last line has no line end: it may be cut")
    return check_signature(Signature(intern(fields[0]), fields[1]))


def format_untuned_line(signature: Signature) -> str:
    """Return the line of a signature, ended."""
    return f"{signature.op},{signature.params}\n"
