"""From the live settings to the rules of one measurement."""

from tensorplay.backends.base import Backend, CandidateQuery
from tensorplay.gemm import GemmProblem
from tensorplay.measure.budget import Budget
from tensorplay.measure.numerics import Tolerance
from tensorplay.runtime.numerical_check import tolerances
from tensorplay.runtime.settings import Settings
from tensorplay.runtime.tuner import TuningRules

__all__ = ["tuning_rules"]

_MIB = 1 << 20


def tuning_rules(settings: Settings, backend: Backend, problem: GemmProblem) -> TuningRules:
    """Return how `problem` is to be measured by what the settings say now."""
    bounds = tolerances(settings.numerical_check)
    rotating_mib = settings.rotating_buffer_size
    return TuningRules(
        query=CandidateQuery(
            breadth=settings.candidates,
            sources=frozenset(settings.sources) or None,
            workspace_bytes=settings.workspace_mib * _MIB,
            deterministic=settings.deterministic,
        ),
        budget=Budget(
            max_duration_ms=settings.max_tuning_duration_ms,
            max_samples=settings.max_tuning_samples,
            warmup_duration_ms=settings.max_warmup_duration_ms,
            warmup_samples=settings.max_warmup_samples,
        ),
        min_gain=settings.min_gain,
        check=settings.numerical_check != "off",
        tolerance=Tolerance(*bounds) if bounds else None,
        search_seconds=settings.max_search_seconds,
        rotating_bytes=backend.default_rotating_bytes(problem.device) if rotating_mib is None else rotating_mib * _MIB,
    )
