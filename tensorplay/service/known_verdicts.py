"""Why winners were selected, of many at once: which were compared, and which are the first choice for want of that."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tensorplay.database.explanations import explanations_name
from tensorplay.database.record import Entry, Validator
from tensorplay.database.validators import digest
from tensorplay.gemm import Signature
from tensorplay.measure.report import UNDECIDED
from tensorplay.runtime.device_explanations import explains
from tensorplay.runtime.explained_times import ExplainedTime, ExplainedTimes
from tensorplay.service.met_devices import MetDevices
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.service.row import Row
from tensorplay.service.watched import WatchedContext

__all__ = ["KnownVerdicts"]

_MEASURED = "measured here"
_MOST_ASKED = 100


class KnownVerdicts:
    """The verdicts that the files of explanations tell. Every method may wait for a disk, or a lock of the runtime.

    Parameters
    ----------
    context : WatchedContext
        Whose winners they are of.
    met : MetDevices
        Its devices.
    """

    def __init__(self, context: WatchedContext, met: MetDevices) -> None:
        self._context = context
        self._met = met
        # By build; each file is read where it grew only.
        self._times: dict[str, ExplainedTimes] = {}

    def of(self, rows: Sequence[Row], first_choices: Mapping[Signature, float]) -> dict[Signature, str]:
        """Return the verdicts of winners, where they are known.

        `first_choices` are their first choices' times: one that is known of what no file tells is in memory, as
        after a measurement whose explanation is not written yet.
        """
        if isinstance(self._context, RecordedContext):
            return self._context.verdicts([row.signature for row in rows])
        told, found = list(self._told()), {}
        for row in rows:
            entry = Entry(row.op, row.params, row.kernel, row.time_ms)
            for times in told:
                time = times.get(row.signature)
                if time is not None and explains(time, entry):
                    found[row.signature] = time.verdict
                    break
        unknown = [
            row.signature
            for row in rows
            if row.origin == _MEASURED and row.signature in first_choices and row.signature not in found
        ]
        for signature in unknown[:_MOST_ASKED]:
            verdict = self._context.explain(*signature).get("verdict")
            if verdict is not None:
                found[signature] = str(verdict)
        return found

    def undecided(self) -> dict[str, int]:
        """Return how many winners were never really compared, by their verdicts; the most frequent first."""
        if isinstance(self._context, RecordedContext):
            recorded = (Signature(each.op, each.params) for each in self._context.each_recorded())
            counted = Counter(self._context.verdicts(recorded).values())
        else:
            counted = Counter(self._open())
        return {verdict: count for verdict, count in counted.most_common() if verdict in UNDECIDED}

    def _open(self) -> Iterator[str]:
        """Yield the verdicts of winners that were never really compared: of few signatures, where there are many."""
        times = {
            signature: time
            for told in reversed(list(self._told()))
            for signature, time in told.items()
            if time.verdict in UNDECIDED
        }
        for op, params, kernel, time_ms, *_ in self._context.recorded_of(times):
            time = times[Signature(op, params)]
            if explains(time, Entry(op, params, kernel, time_ms)):
                yield time.verdict

    def _told(self) -> Iterator[Mapping[Signature, ExplainedTime]]:
        """Yield what each file of explanations tells of the build that its device is of."""
        for device in self._met.now():
            if device.validators:
                build = digest([Validator(*pair) for pair in device.validators])
                times = self._times.get(build)
                if times is None:
                    times = self._times[build] = ExplainedTimes(build)
                yield times.of(explanations_name(device.path))
