"""What the REST API gives of several ranks, as its OpenAPI document describes it."""

from typing import Any, Literal

from pydantic import BaseModel, Field

__all__ = ["Disagreement", "RankAnswer", "RankAnswers", "RankModel", "RankSummary", "RankWinner"]


class RankSummary(BaseModel):
    """What one process tells of itself."""

    id: str = Field(description="Of the process that answers; another one after a restart.")
    pid: int
    rank: int | None
    local_rank: int | None
    world_size: int | None
    version: str
    started_at: str
    read_only: bool
    devices: list[str] = Field(examples=[["0"]])
    stats: dict[str, int]
    results: int
    results_revision: int
    rejections: int = Field(description="Recorded winners that did not run, and were not measured anew.")
    untuned: int
    settings: dict[str, Any]


class RankModel(BaseModel):
    """One of the processes of a job on this host."""

    local_rank: int = Field(description="Its number on this host, by which it is addressed.")
    state: Literal["reachable", "unreachable"]
    reason: str | None = Field(description="Why it is not reachable, and what to do.")
    is_own: bool = Field(description="Whether it is the one that answers.")
    differs: dict[str, Any] = Field(description="Its value of each setting that is not the same on all ranks.")
    summary: RankSummary | None = Field(description="What it tells of itself; null when it is not reachable.")


class RankWinner(BaseModel):
    """What one rank recorded for a shape; the time is in milliseconds."""

    local_rank: int
    id: str = Field(examples=["0123456789abcdef"])
    params: str
    kernel: str
    time_ms: float


class Disagreement(BaseModel):
    """One shape for which not all ranks recorded the same kernel."""

    shape_id: str
    op: str
    params: str = Field(description="Without the device.")
    spread: float | None = Field(description="The slowest winner's time over the fastest one's.")
    winners: list[RankWinner]


class RankAnswer(BaseModel):
    """What one rank answered to a change."""

    local_rank: int
    status: int = Field(description="Of HTTP.")
    body: Any


class RankAnswers(BaseModel):
    """What each rank answered to a change."""

    items: list[RankAnswer]
