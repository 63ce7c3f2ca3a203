"""Where in a results file a winner stands: looked for when somebody asks, so that loading a file need not keep it."""

from typing import NamedTuple

from tensorplay.database.csv_text import each_line, is_same_as_text
from tensorplay.database.line_file import read_settled
from tensorplay.database.record import Entry

__all__ = ["WrittenLine", "line_in", "written_line"]

_MARK = b"\xef\xbb\xbf"


class WrittenLine(NamedTuple):
    """A line of a file: its path, and the number of the line, from 1."""

    path: str
    line: int


def written_line(path: str, entry: Entry) -> WrittenLine | None:
    """Return the line of a file that a winner stands in now; None where its last line says another, or there is none.

    A file that cannot be read has none. Takes some milliseconds of a file of a hundred thousand winners.
    """
    try:
        data, _ = read_settled(path)
    except (OSError, ValueError):
        return None
    number = line_in(data, entry)
    return None if number is None else WrittenLine(path, number)


def line_in(data: bytes, entry: Entry) -> int | None:
    """Return the number of the line, from 1, that a winner stands in; None where its signature's last line is another.

    A line that cannot be read is none, as when the file is loaded.
    """
    start = f"{entry.op},{entry.params},".encode(errors="surrogatepass")
    end = len(data)
    while (place := _last_line(data, start, end)) is not None:
        stop = data.find(b"\n", place)
        line = data[place:] if stop < 0 else data[place : stop + 1]
        found = next(each_line(line), None)
        if isinstance(found, Entry):
            return data.count(b"\n", 0, place) + 1 if is_same_as_text(found, entry) else None
        end = place
    return None


def _last_line(data: bytes, start: bytes, end: int) -> int | None:
    """Return where the last line begins that starts so and begins before `end`."""
    place = data.rfind(b"\n" + start, 0, end - 1 + len(start))
    if place >= 0:
        return place + 1
    first = len(_MARK) if data.startswith(_MARK) else 0
    return first if first < end and data.startswith(start, first) else None
