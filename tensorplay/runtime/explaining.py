"""What happened in a context, and why: answers from memory, and from what other processes wrote."""

from dataclasses import fields

from tensorplay.database.filename import sibling_name
from tensorplay.database.record import Entry
from tensorplay.database.validators import digest
from tensorplay.errors import TensorPlayError
from tensorplay.gemm import GemmProblem, Signature, parse_signature
from tensorplay.measure.report import SelectionReport
from tensorplay.runtime.deferred import Deferred
from tensorplay.runtime.device_explanations import DeviceExplanations, explains
from tensorplay.runtime.device_results import DeviceResults
from tensorplay.runtime.explained_times import ExplainedTime
from tensorplay.runtime.ledger import Evidence
from tensorplay.runtime.rejections import Rejection

__all__ = ["Explaining"]

_FOUND = (*(field.name for field in fields(SelectionReport)), "left_out", "clocks")


class Explaining(Deferred):
    """A context that says what it did."""

    def get_rejections(self) -> list[Rejection]:
        """Return the recorded winners that did not run in this process, with the reason of each."""
        return self._ledger.rejections.listed()

    def get_untuned(self) -> list[tuple[str, str]]:
        """Return the signatures (op, params) that ran without a winner in this process, in the order met."""
        return [(op, params) for op, params in self._ledger.untuned()]

    def stats(self) -> dict[str, int]:
        """Return how often each thing happened in this process, and how much is left to be measured in the background.

        `Reason` says what each counts. `waiting` and `measuring` are the signatures that wait now, and are being
        measured now.
        """
        now = {"waiting": self.background.waiting, "measuring": int(self.background.measuring is not None)}
        return self._ledger.counters.totals() | now

    def explain(self, op: str, params: str) -> dict[str, object]:
        """Return why a signature runs what it runs: its entry, the candidates, their times, and the margin.

        What the measurement found (`verdict`, `candidates`, `confirmation`, ...) is read from the file of explanations
        where another process measured, and None where nothing says it. `SignatureError` when op and params are no
        signature.
        """
        problem = parse_signature(op, params)
        signature = Signature(op, params)
        held = [(device, device.results.get(signature)) for device in self._met()]
        device, entry = next(((device, entry) for device, entry in held if entry is not None), (None, None))
        return {
            "op": op,
            "params": params,
            "kernel": entry.kernel if entry else None,
            "time_ms": entry.time_ms if entry else None,
            "origin": device.origins.get(signature, "file") if device else None,
            "pinned": self._ledger.pinned(signature),
            "not_measured": self._ledger.not_measurable(signature),
            "background": self.background.state(signature),
            "rejections": [tuple(rejection) for rejection in self._ledger.rejections.of(signature)],
            "calls": self._ledger.counters.calls(signature),
            **dict.fromkeys(_FOUND),
            **self._found(signature, problem, device, entry),
        }

    def _found(
        self, signature: Signature, problem: GemmProblem, device: DeviceResults | None, entry: Entry | None
    ) -> dict[str, object]:
        """Return what the measurement of a signature found, in this process or, by the file, in another."""
        evidence = self._evidence_of(signature, entry)
        if evidence is not None:
            return evidence.to_dict()
        try:
            device = device or self._devices.get(problem.device)
            explanations = device.explanations if device else self._explanations_on(problem.device)
        except TensorPlayError:
            # Of a device that is not here, nobody knows what its files must match.
            return {}
        found = explanations.find(signature, entry)
        return {} if found is None else {key: value for key, value in found.to_dict().items() if key != "build"}

    def _evidence_of(self, signature: Signature, entry: Entry | None) -> Evidence | None:
        """Return how this process chose an entry, or the signature's last one when there is none now.

        None where it did not: of an entry that a file has put in the place of one that was measured here.
        """
        evidence = self._ledger.evidence(signature)
        if evidence is None or entry is None:
            return evidence
        report = evidence.report
        is_explained = explains(ExplainedTime(report.winner, report.winner_ms, report.first_choice_ms), entry)
        return evidence if is_explained else None

    def _explanations_on(self, device: str) -> DeviceExplanations:
        """Return the explanations of a device that was not met, which stays so."""
        build = digest(self._facts(device, self.backend(device)))
        path = self._absolute(self._results_name(device))
        return DeviceExplanations(build, lambda: (path, sibling_name(path, build)), self.listeners)
