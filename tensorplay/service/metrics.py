"""Numbers for Prometheus, read when they are asked for: nothing is counted in a product's way for them."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from tensorplay.service.jobs import OVER
from tensorplay.service.state import State

__all__ = ["RuntimeCollector"]


class RuntimeCollector:
    """Collects what a runtime knows at one moment."""

    def __init__(self, state: State) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        runtime = self._state.runtime
        calls = CounterMetricFamily("tensorplay_gemm_calls", "Products, by what ran", labels=["outcome"])
        for outcome, count in runtime.context.stats().items():
            calls.add_metric([outcome], count)
        yield calls
        values = {setting.name: setting.value for setting in runtime.settings()}
        yield GaugeMetricFamily("tensorplay_results", "Winners in memory", value=len(runtime.index()))
        yield GaugeMetricFamily(
            "tensorplay_untuned_signatures", "Signatures without a winner", value=len(runtime.untuned())
        )
        healed = Counter("healed" if each.healed else "open" for each in runtime.rejections())
        rejections = GaugeMetricFamily("tensorplay_rejections", "Winners that did not run", labels=["state"])
        for state in ("open", "healed"):
            rejections.add_metric([state], healed[state])
        yield rejections
        yield GaugeMetricFamily("tensorplay_enabled", "Whether the feature is on", value=bool(values["enabled"]))
        yield GaugeMetricFamily("tensorplay_tuning_enabled", "Whether measuring is on", value=bool(values["tuning"]))
        running = next((job for job in self._state.jobs.listed() if job.state not in OVER), None)
        share = running.done / len(running.signatures) if running else 0.0
        yield GaugeMetricFamily("tensorplay_job_progress_ratio", "Done part of the running job", value=share)
        yield GaugeMetricFamily("tensorplay_web_sse_clients", "Open event streams", value=self._state.hub.clients)
        yield CounterMetricFamily("tensorplay_web_dropped_events", "Events lost", value=self._state.hub.dropped)
        yield InfoMetricFamily("tensorplay_build", "This build", value={"version": self._state.instance.version})
