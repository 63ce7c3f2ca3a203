"""What the REST API takes and gives, as its OpenAPI document describes it."""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from tensorplay.service.file_names import RESULTS_PATTERN
from tensorplay.service.given import Given
from tensorplay.service.measured_schemas import CAPTURED, PINNED, HistogramModel, NumericalCheckModel, Provenance

__all__ = [
    "BudgetPatch",
    "Candidate",
    "InstanceModel",
    "JobBudget",
    "JobModel",
    "JobRequest",
    "Listed",
    "LogEntry",
    "Override",
    "PastModel",
    "RejectionCode",
    "RejectionModel",
    "ResultDetail",
    "ResultModel",
    "SettingModel",
    "SettingPatch",
    "SignatureModel",
    "SwitchPatch",
    "SwitchValue",
    "UntunedModel",
    "Value",
]

T = TypeVar("T")

_OP, _PARAMS = "GemmTunableOp_Float32", "taN_m512_n1024_k256_bias0_dev0"
_KERNEL = "lt_id7_tile12_stages3_splitk0_red0_swizzle0_custom0_inner1_cluster1"
_TIME = "2026-11-30T12:00:00+00:00"


class Listed(BaseModel, Generic[T]):
    """A part of a list."""

    items: list[T]
    next: str | None = Field(default=None, description="Cursor of what follows; null at the end.")
    total: int = Field(description="How many there are in all.")
    revision: int = Field(description="Grows whenever the list changes.")


class InstanceModel(BaseModel):
    """The process that answers."""

    id: str
    pid: int
    user: str
    host: str
    command: str
    rank: int | None
    local_rank: int | None
    world_size: int | None
    version: str
    python: str
    started_at: str = Field(examples=[_TIME])
    read_only: bool
    devices: list[str] = Field(default=[], description="Those that were met.", examples=[["0"]])
    links: dict[str, str] = Field(
        default={}, description="What can be read, behind the service's address.", examples=[{"jobs": "api/v1/jobs"}]
    )


class SettingModel(BaseModel):
    """One setting as it stands."""

    name: str = Field(examples=["max_tuning_duration_ms"])
    value: Any
    default: Any
    origin: Literal["default", "environment", "api", "rest", "counted"]
    locked: bool = Field(description="Whether a client cannot change it.")
    variable: str = Field(examples=["TP_TUNABLEOP_MAX_TUNING_DURATION_MS"])
    allowed: str
    help: str


class Value(Given):
    """A new value."""

    value: Any = Field(examples=[True], description="null is the default.")


class SwitchValue(Given):
    """A new value of a switch."""

    value: StrictBool = Field(examples=[True])


class SwitchPatch(Given):
    """Switches to change; those that are left out stay, and null is the default."""

    enabled: StrictBool | None = None
    tuning: StrictBool | None = None
    record_untuned: StrictBool | None = None


Whole = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]


class BudgetPatch(Given):
    """Budgets to change; those that are left out stay, zero is no limit, and null is the default."""

    max_tuning_duration_ms: Whole | None = None
    max_tuning_samples: Whole | None = None
    total_tuning_seconds: Annotated[float, Field(ge=0, le=2**31 - 1, strict=True)] | None = None
    workspace_mib: Annotated[int, Field(ge=0, le=2**20, strict=True)] | None = None


class SettingPatch(Given):
    """Settings to change, by name; null is the default."""

    values: dict[str, Any] = Field(examples=[{"min_gain": 0.02}])


class SignatureModel(Given):
    """The op and params of a product."""

    op: str = Field(examples=[_OP], max_length=200)
    params: str = Field(examples=[_PARAMS], max_length=400)


class ResultModel(BaseModel):
    """One winner; the time is in milliseconds, sizes are of (m, k) @ (k, n)."""

    id: str = Field(examples=["0123456789abcdef"])
    shape_id: str
    op: str = Field(examples=[_OP])
    params: str = Field(examples=[_PARAMS])
    kernel: str = Field(examples=[_KERNEL])
    time_ms: float
    first_choice_ms: float | None = Field(description="Of the library's first choice; null when it is not known.")
    gain: float | None = Field(description="How many times faster than the first choice.")
    saved_ms: float | None = Field(
        default=None, description="What a call takes less than with the first choice; below zero, what it takes more."
    )
    tflops: float | None
    verdict: str | None = Field(default=None, description="Why it was selected; null if unknown.", examples=["winner"])
    device: str
    origin: str
    pinned: bool = Field(description=PINNED)
    dtype: str
    transposed: bool
    bias: bool
    m: int
    n: int
    k: int


class Candidate(BaseModel):
    """What was measured of one candidate; times in milliseconds."""

    model_config = ConfigDict(extra="allow")

    kernel: str
    samples: int
    median_ms: float | None
    quartile_low_ms: float | None
    quartile_high_ms: float | None
    screened_ms: float | None
    dropped: str | None


class PastModel(BaseModel):
    """A winner that a signature had, from some moment on; the time is in milliseconds."""

    time: str | None = Field(description="When it was recorded; null where no file says it.", examples=[_TIME])
    kernel: str = Field(examples=[_KERNEL])
    time_ms: float
    origin: Literal["measured here", "healed", "override", "file", "measured"]


class ResultDetail(ResultModel):
    """One winner with everything that is known of how it was chosen."""

    verdict: str | None
    confirmation: dict[str, Any] | None
    candidates: list[Candidate] | None
    captured: str | None = Field(description=CAPTURED)
    not_measured: str | None = Field(description="Why it is not measured, where that was tried in vain.")
    calls: dict[str, int]
    history: list[PastModel] = Field(description="The winners that it is known to have had, oldest first.")
    histogram: HistogramModel | None = Field(
        default=None, description="Of the confirmation's samples; null where it is not known."
    )
    numerical_check: NumericalCheckModel | None = Field(default=None, description="Null where it is not known.")
    provenance: Provenance | None = Field(default=None, description="Looked up in its files as they are now.")


class Override(Given):
    """A kernel of the client's choice, or `Default`."""

    kernel: str = Field(examples=[_KERNEL], max_length=400)


RejectionCode = Literal["not_rebuildable", "check_failed", "not_allowed", "validator_mismatch", "unparsable"]


class RejectionModel(BaseModel):
    """A recorded winner that did not run, or what a results file was refused for."""

    id: str = Field(examples=["89abcdef01234567"])
    result_id: str | None = Field(description="Of the signature; null for what is wrong with a whole file.")
    code: RejectionCode = Field(description="Why, for programs; `check_failed` is a kernel that failed when it ran.")
    reason: str = Field(description="Why, for people.")
    op: str | None = Field(default=None, examples=[_OP])
    params: str | None = Field(default=None, examples=[_PARAMS])
    kernel: str | None = Field(default=None, examples=[_KERNEL])
    expected: str | None = Field(default=None, description="This build's value of a validator that differs.")
    found: list[str] | None = Field(default=None, description="The file's values of it; several contradict.")
    file: str | None = Field(default=None, description="The name of the file that is meant.")
    line: int | None = Field(default=None, description="The line of it, from 1.")
    count: int = Field(default=1, description="How often it was met: whenever its product was decided anew.")
    first_seen: str | None = Field(default=None, description="Null for what is wrong with a file.", examples=[_TIME])
    last_seen: str | None = Field(default=None, description="Null for what is wrong with a file.", examples=[_TIME])
    healed: str | None = Field(default=None, description="The kernel that was measured in its place.")


class UntunedModel(BaseModel):
    """A signature that ran without a winner."""

    id: str
    op: str
    params: str
    calls: int = Field(description="That ran without a winner.")
    first_seen: str | None = Field(default=None, description="Null for what was met before the service started.")
    last_seen: str | None = Field(
        default=None, description="When more calls were last found, by whoever looked; null for none since the start."
    )


class JobSource(Given):
    """What a job tunes: exactly one of these."""

    untuned: StrictBool | None = None
    signatures: list[SignatureModel] | None = Field(default=None, max_length=10_000, fail_fast=True)
    file: str | None = Field(
        default=None, pattern=RESULTS_PATTERN, examples=["tunableop_untuned0.csv"], description="Of GET /files."
    )


class JobBudget(Given):
    """What a job may take; zero is no limit, and what is left out is as the process has it."""

    total_seconds: Annotated[float, Field(ge=0, le=2**31 - 1, strict=True)] | None = Field(
        default=None, description="After so long no further signature is begun."
    )
    max_tuning_duration_ms: Whole | None = Field(default=None, description="For one candidate, while the job runs.")
    max_tuning_samples: Whole | None = Field(default=None, description="Of one candidate, while the job runs.")


class JobRequest(Given):
    """A job to start; `tune` skips what has a winner that runs, `retune` measures that too."""

    kind: Literal["tune", "retune"] = "tune"
    source: JobSource
    budget: JobBudget = JobBudget()


class Failure(BaseModel):
    """A signature that got no winner by being measured, or could not be measured."""

    op: str
    params: str
    reason: str


class JobModel(BaseModel):
    """A job as it stands."""

    id: str
    kind: Literal["tune", "retune"] = Field(default="tune", description="`retune` measures what has a winner, too.")
    state: Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]
    done: int
    skipped: int = Field(default=0, description="Those of `done` that have a winner that runs, and stayed.")
    total: int
    current: str | None
    elapsed_s: float
    eta_s: float | None
    failed: int = Field(default=0, description="Those of `done` that could not be measured, or decided nothing.")
    failures: list[Failure] = Field(description="The first hundred of `failed`, each with its reason.")
    budget: JobBudget = JobBudget()
    reason: str | None = Field(default=None, description="Why it ended before all was measured, if it did.")
    created_at: str


class LogEntry(BaseModel):
    """One event of the runtime."""

    number: int
    time: str
    kind: str
    detail: dict[str, str]
