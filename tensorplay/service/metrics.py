"""Numbers for Prometheus, read when they are asked for: nothing is counted in a product's way for them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from tensorplay.runtime.resolution import Reason
from tensorplay.service.met_devices import MetDevice, validators_of
from tensorplay.service.schemas import RejectionModel
from tensorplay.service.state import State

__all__ = ["Looked", "RuntimeCollector"]

_LIBRARIES = ("CUBLASLT_VERSION", "HOST_BLAS")
"""Validators that name the library of a device."""

_CALLS = (Reason.REPLAYED, Reason.FIRST_CHOICE, Reason.SELECTED_IN_PROCESS, Reason.FALLBACK)
_SIGNATURES = (Reason.MEASURED, Reason.QUEUED, Reason.UNTUNED, Reason.PINNED, Reason.REJECTED)
_NOW = ("waiting", "measuring")


class Looked(NamedTuple):
    """What was waited for before anything was collected.

    Attributes
    ----------
    winners, untuned : int
        How many winners, and signatures without one, there are.
    rejections : sequence of RejectionModel
        What is listed.
    devices : sequence of MetDevice
        Those that were met.
    lag_s : float
        How late the loop that answers was just now, in seconds.
    """

    winners: int
    untuned: int
    rejections: Sequence[RejectionModel]
    devices: Sequence[MetDevice]
    lag_s: float


class RuntimeCollector:
    """Collects what a runtime knows at one moment.

    Parameters
    ----------
    state : State
        Of the application.
    looked : Looked
        What takes a while to know.
    """

    def __init__(self, state: State, looked: Looked) -> None:
        self._state = state
        self._looked = looked

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; never a shape as a label."""
        yield from self._stats()
        yield from self._lists()
        yield from self._tuning()
        yield GaugeMetricFamily("tensorplay_web_sse_clients", "Open event streams", value=self._state.hub.clients)
        yield CounterMetricFamily("tensorplay_web_dropped_events", "Events lost", value=self._state.hub.dropped)
        yield GaugeMetricFamily(
            "tensorplay_web_event_loop_lag_seconds", "How late the service's loop was", value=self._looked.lag_s
        )
        yield self._build()

    def _stats(self) -> Iterator[Metric]:
        """Yield what `stats` counts, which is not all of one kind: calls, signatures, files, and what is so now."""
        stats = self._state.runtime.context.stats()
        yield _counts(
            "tensorplay_gemm_calls",
            "Products, by what ran; fallback: those of replayed that the first choice ran after all",
            "outcome",
            {reason: stats[reason] for reason in _CALLS},
        )
        yield _counts(
            "tensorplay_signatures",
            "Signatures, by what became of them",
            "outcome",
            {reason: stats[reason] for reason in _SIGNATURES},
        )
        yield CounterMetricFamily(
            "tensorplay_unexplained_results",
            "Winners whose explanation could not be written",
            value=stats[Reason.UNEXPLAINED],
        )
        yield _gauges(
            "tensorplay_background_signatures",
            "Signatures that wait to be measured in the background, and that are measured there",
            "state",
            {state: stats[state] for state in _NOW},
        )

    def _lists(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("tensorplay_results", "Winners in memory", value=self._looked.winners)
        yield GaugeMetricFamily(
            "tensorplay_untuned_signatures", "Signatures without a winner", value=self._looked.untuned
        )
        found = self._looked.rejections
        states = Counter("healed" if each.healed else "open" for each in found)
        yield _gauges(
            "tensorplay_rejections_listed",
            "Winners that did not run, and faults of files",
            "state",
            {state: states[state] for state in ("open", "healed")},
        )
        reasons: Counter[str] = Counter()
        for each in found:
            reasons[each.code] += each.count
        yield _counts("tensorplay_rejections", "How often a rejected winner was met", "reason", reasons)

    def _tuning(self) -> Iterator[Metric]:
        runtime = self._state.runtime
        values = {setting.name: setting.value for setting in runtime.settings()}
        yield GaugeMetricFamily("tensorplay_enabled", "Whether the feature is on", value=bool(values["enabled"]))
        yield GaugeMetricFamily("tensorplay_tuning_enabled", "Whether measuring is on", value=bool(values["tuning"]))
        yield CounterMetricFamily(
            "tensorplay_tuning_seconds", "Time spent on measuring", value=runtime.context.spent_tuning_seconds()
        )
        yield _counts(
            "tensorplay_tuning_candidates",
            "Candidates measured since the service started, by what became of them",
            "outcome",
            runtime.outcomes(),
        )
        running = self._state.jobs.running()
        share = running.done / len(running.signatures) if running else 0.0
        yield GaugeMetricFamily("tensorplay_job_progress_ratio", "Done part of the running job", value=share)

    def _build(self) -> Metric:
        """Return version, device and library as labels: one line for each device that was met."""
        build = InfoMetricFamily("tensorplay_build", "This build", labels=["device", "library"])
        for device, pairs in (validators_of(self._looked.devices) or {"": ()}).items():
            library = next((value for name, value in pairs if name in _LIBRARIES), "")
            build.add_metric([device, library], {"version": self._state.instance.version})
        return build


def _counts(name: str, about: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, about, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _gauges(name: str, about: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, about, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
