"""The results in memory: what every thread reads and any thread may add to."""

from collections.abc import Iterable, Iterator

from tensorplay.database.entries import Entries, Raw
from tensorplay.database.record import Entry
from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock

__all__ = ["Results"]


class Results:
    """The winners of one device by signature.

    Readers take no lock: each look-up is two dictionary reads. Writers take turns. A forked child may go on
    using what it inherits.
    """

    def __init__(self) -> None:
        # By op, then params: 100,000 winners need no key object each. Plain tuples, as in `Entries`.
        self._by_op: dict[str, dict[str, Raw]] = {}
        self._lock = ForkSafeLock()
        self._revision = 0

    @property
    def revision(self) -> int:
        """Return a number that grows whenever anything changes."""
        return self._revision

    def get(self, signature: Signature) -> Entry | None:
        """Return the winner of a signature, or None."""
        op, params = signature
        by_params = self._by_op.get(op)
        found = None if by_params is None else by_params.get(params)
        return None if found is None else Entry._make(found)

    def put(self, entry: Entry) -> None:
        """Make `entry` the winner of its signature."""
        self.merge((entry,), overwrite=True)

    def merge(self, entries: Iterable[Raw], *, overwrite: bool) -> int:
        """Take entries in, and return how many signatures that changed.

        Of several entries of one signature the last counts. One that is in memory already stays, unless
        `overwrite` is set.
        """
        newest: dict[str, dict[str, Raw]] = {}
        for op, params, kernel, time_ms in entries:
            newest.setdefault(op, {})[params] = op, params, kernel, time_ms
        with self._lock:
            changed = sum(self._merge_op(op, by_params, overwrite=overwrite) for op, by_params in newest.items())
            self._revision += bool(changed)
        return changed

    def _merge_op(self, op: str, newest: dict[str, Raw], *, overwrite: bool) -> int:
        # Looked up and set in one step each: a signal handler that multiplies may put a winner between two.
        known = self._by_op.setdefault(op, newest)
        if known is newest:
            return len(newest)
        changed = 0
        for params, entry in newest.items():
            before = known.setdefault(params, entry)
            if before is entry:
                changed += 1
            elif overwrite and before != entry:
                known[params] = entry
                changed += 1
        return changed

    def remove(self, signature: Signature) -> bool:
        """Forget the winner of a signature; return whether there was one."""
        with self._lock:
            removed = self._by_op.get(signature.op, {}).pop(signature.params, None) is not None
            self._revision += removed
        return removed

    def entries(self) -> list[Entry]:
        """Return every winner, sorted by op and params, as they are at one moment."""
        return sorted(self)

    def unsorted(self) -> Entries:
        """Return every winner in no particular order, as they are at one moment."""
        found = Entries()
        with self._lock:
            # Of a copy: a signal handler that multiplies takes this lock again, and may put the first winner of an op.
            for by_params in list(self._by_op.values()):
                # As they are: to make a plain tuple of each would hold up every other thread four times as long.
                found.extend(by_params.values())  # type: ignore[arg-type] # plain, as in `Entries`
        return found

    def __iter__(self) -> Iterator[Entry]:
        """Return every winner in no particular order, as they are at one moment."""
        return iter(self.unsorted())

    def __len__(self) -> int:
        return sum(map(len, tuple(self._by_op.values())))
