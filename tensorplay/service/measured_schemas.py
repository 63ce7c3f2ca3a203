"""What the REST API tells of a winner's samples, numbers and place, as its OpenAPI document describes it."""

from typing import Literal

from pydantic import BaseModel, Field

__all__ = ["CAPTURED", "PINNED", "HistogramModel", "NumericalCheckModel", "Provenance", "Spread"]

CAPTURED = (
    "Why the first choice runs for the rest of the process, if it does: since a graph capture saw it. This is what "
    "`explain()` of Python and the command line call `pinned`, and not the `pinned` of a winner."
)
PINNED = (
    "Whether nothing changes it until it is unpinned: what `PUT /results/{identity}/pin` sets. What a graph capture "
    "keeps is `captured`."
)
"""The two as they are described wherever they are told."""


class Spread(BaseModel):
    """How many samples of one side are in each bin, and how many below the first bin and above the last one."""

    counts: list[int] = Field(examples=[[0, 0, 0, 14, 9, 2]])
    below: int
    above: int


class HistogramModel(BaseModel):
    """The samples of the confirmation, in equal bins that are the same for both sides; in milliseconds."""

    low_ms: float = Field(description="Where the first bin begins.")
    high_ms: float = Field(description="Where the last bin ends.")
    first_choice: Spread
    winner: Spread


class NumericalCheckModel(BaseModel):
    """What the numerical check found of the kernel that the measurement selected."""

    outcome: Literal["passed", "reference", "off"] = Field(
        description="`passed`: its result agrees with the first choice's; `reference`: it is the first choice, which "
        "the others are compared with; `off`: nobody compared it."
    )
    reason: str = Field(description="What it was compared with, for people.")
    max_abs_error: float | None = Field(
        description="The largest of all elements; null where no number says it: a device compares them by itself."
    )
    max_rel_error: float | None = Field(description="The same over what is expected.")
    atol: float | None = Field(description="An element may be off by this and `rtol` times what is expected.")
    rtol: float | None
    compared: int = Field(description="Candidates of the measurement whose results were compared.")
    wrong: int = Field(description="Those of them that did not pass.")


class Provenance(BaseModel):
    """Where a winner is from, and where it stands."""

    origin: str = Field(description="As of the winner itself.", examples=["file"])
    file: str | None = Field(description="The name of the results file that it stands in now; null for none.")
    line: int | None = Field(description="The line of it, from 1.")
