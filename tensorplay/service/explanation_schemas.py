"""What the REST API tells of how a signature came to run what it runs, as its OpenAPI document describes it."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from tensorplay.service.measured_schemas import CAPTURED, HistogramModel, NumericalCheckModel
from tensorplay.service.schemas import Candidate

__all__ = ["EXPLAINED", "HISTOGRAM", "NUMERICAL_CHECK", "ExplanationModel", "RejectedKernel"]

_OP, _PARAMS = "GemmTunableOp_Float32", "taN_m512_n1024_k256_bias0_dev0"
_KERNEL = "lt_id7_tile12_stages3_splitk0_red0_swizzle0_custom0_inner1_cluster1"
_FIRST = "lt_id7_tile12_stages2_splitk0_red0_swizzle0_custom0_inner1_cluster1"
HISTOGRAM: Mapping[str, Any] = {
    "low_ms": 0.0309,
    "high_ms": 0.0429,
    "first_choice": {"counts": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 17, 4], "below": 0, "above": 1},
    "winner": {"counts": [11, 12, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "below": 0, "above": 0},
}
"""An example of a `HistogramModel`."""

NUMERICAL_CHECK: Mapping[str, Any] = {
    "outcome": "passed",
    "reason": "within the tolerance of the default's",
    "max_abs_error": 2.1e-06,
    "max_rel_error": 3.4e-06,
    "atol": 0.0001,
    "rtol": 1e-05,
    "compared": 38,
    "wrong": 0,
}
"""An example of a `NumericalCheckModel`."""

EXPLAINED: Mapping[str, Any] = {
    "op": _OP,
    "params": _PARAMS,
    "result_id": "0123456789abcdef",
    "kernel": _KERNEL,
    "time_ms": 0.0312,
    "origin": "measured here",
    "captured": None,
    "not_measured": None,
    "background": None,
    "rejections": [],
    "calls": {"replayed": 128},
    "verdict": "winner",
    "winner": _KERNEL,
    "winner_ms": 0.0312,
    "first_choice_ms": 0.0421,
    "candidates": [
        {
            "kernel": kernel, "samples": 25, "median_ms": median, "quartile_low_ms": low, "quartile_high_ms": high,
            "screened_ms": median, "dropped": dropped,
        }
        for kernel, low, median, high, dropped in (
            (_FIRST, 0.0419, 0.0421, 0.0424, "confirmation: the winner gains +34.9% (+34.1% to +35.6%)"),
            (_KERNEL, 0.0311, 0.0312, 0.0314, None),
        )
    ],
    "left_out": 0,
    "confirmation": {
        "pairs": 25, "first_choice_ms": 0.0421, "winner_ms": 0.0312, "gain": 0.349, "gain_low": 0.341,
        "gain_high": 0.356, "margin": 0.02,
    },
    "search": None,
    "clocks": {"sm": 1980, "memory": 2619},
    "histogram": HISTOGRAM,
    "numerical_check": NUMERICAL_CHECK,
}  # fmt: skip
"""An example of an `ExplanationModel`; FastAPI would drop what is null in one that a schema has."""


class RejectedKernel(BaseModel):
    """A recorded winner of the signature that did not run."""

    kernel: str = Field(examples=[_KERNEL])
    reason: str
    healed: str | None = Field(description="The kernel that was measured in its place.", examples=[_KERNEL])


class ExplanationModel(BaseModel):
    """Why a signature runs what it runs; times in milliseconds, null for what nothing says."""

    op: str = Field(examples=[_OP])
    params: str = Field(examples=[_PARAMS])
    result_id: str | None = Field(description="Of its winner; null where it has none.")
    kernel: str | None = Field(description="Its winner.")
    time_ms: float | None
    origin: str | None
    captured: str | None = Field(description=CAPTURED)
    not_measured: str | None = Field(description="Why it is not measured, where that was tried in vain.")
    background: Literal["queued", "measuring"] | None = Field(description="Whether it is measured in the background.")
    rejections: list[RejectedKernel]
    calls: dict[str, int] = Field(description="How often it ran, by what was run.")
    verdict: str | None = Field(description="Why the measurement selected what it selected.")
    winner: str | None = Field(description="What the measurement selected.", examples=[_KERNEL])
    winner_ms: float | None
    first_choice_ms: float | None
    candidates: list[Candidate] | None = Field(description="What was measured of each, the first choice first.")
    left_out: int | None = Field(description="How many more candidates there were than a file has room for.")
    confirmation: dict[str, Any] | None = Field(
        description="The fresh comparison with the first choice: pairs, both times, the gain, its bounds, and the "
        "`margin` that it had to reach."
    )
    search: dict[str, Any] | None = Field(description="How far a search for further candidates went.")
    clocks: dict[str, int] | None = Field(description="Of the device right after the measurement, in MHz.")
    histogram: HistogramModel | None = Field(
        default=None, description="Of the confirmation's samples; null where it is not known."
    )
    numerical_check: NumericalCheckModel | None = Field(default=None, description="Null where it is not known.")
