"""The numbers of all ranks for Prometheus, each with the rank that it is of."""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

__all__ = ["RankMetrics", "metrics_of"]


def metrics_of(text: bytes) -> list[Metric]:
    """Return the metrics that a rank exposes; `ValueError` when that is no exposition."""
    return list(text_string_to_metric_families(text.decode("utf-8")))


class RankMetrics:
    """Collects what the ranks told.

    Parameters
    ----------
    told : mapping
        The metrics of each rank; None of one that did not answer.
    """

    def __init__(self, told: Mapping[int, Iterable[Metric] | None]) -> None:
        self._told = told

    def collect(self) -> Iterator[Metric]:
        """Yield every metric once, with the samples of all ranks."""
        merged: dict[str, Metric] = {}
        up = GaugeMetricFamily("tensorplay_rank_up", "Whether a rank of this host answers", labels=["rank"])
        for rank, metrics in self._told.items():
            up.add_metric([str(rank)], metrics is not None)
            for metric in metrics or ():
                family = merged.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                for sample in metric.samples:
                    family.add_sample(sample.name, {**sample.labels, "rank": str(rank)}, sample.value)
        yield up
        yield from merged.values()
