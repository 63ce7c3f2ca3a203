"""Events of a stream, and how they are read from its lines."""

import json
from typing import Any, NamedTuple

__all__ = ["Event", "EventReader"]


class Event(NamedTuple):
    """One event.

    Attributes
    ----------
    id : str
        Where a stream that was cut goes on: `events(last_id=...)`.
    kind : str
        A list that has a new revision, `log`, `hello` at the start, `bye` at the end, or `resync`: events were lost,
        so everything must be read anew.
    data : dict
        What the event says.
    """

    id: str
    kind: str
    data: dict[str, Any]


class EventReader:
    """Puts the lines of an event stream together; what is no event of ours is left out."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> Event | None:
        """Take a line without its end; return the event that it completes."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data" and "data" in self._fields:
                value = f"{self._fields['data']}\n{value}"
            self._fields[name] = value
            return None
        fields, self._fields = self._fields, {}
        try:
            data = json.loads(fields.get("data", ""))
        except ValueError:
            return None
        if not isinstance(data, dict):
            return None
        return Event(fields.get("id", ""), fields.get("event", "message"), data)
