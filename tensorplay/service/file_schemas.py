"""What loading and saving files takes and gives, as the OpenAPI document describes it."""

from typing import Literal

from pydantic import BaseModel, Field

from tensorplay.service.given import Given

__all__ = ["BadLineModel", "FileModel", "LoadReport", "LoadRequest", "MismatchModel", "SaveReport", "SaveRequest"]


class FileModel(BaseModel):
    """A file, by its name alone."""

    name: str = Field(examples=["tunableop_results0.csv"])
    kind: Literal["results", "untuned", "explanations"] = "results"
    device: str | None = Field(description="Whose winners go there, if anybody's.")
    size: int | None = Field(description="In bytes; null for one that is not written yet.")
    modified: str | None
    etag: str | None = Field(default=None, description="What If-Match is given to write over it.")
    validators: dict[str, str] = Field(default={}, description="What it says that it was written by.")
    matches: bool | None = Field(default=None, description="Whether a device here has the same validators.")


class LoadRequest(Given):
    """How a results file is loaded."""

    overwrite: bool = Field(default=False, strict=True, description="Whether its winners replace those in memory.")
    device: str | None = Field(
        default=None, max_length=40, description="Whose winners they are; the one it matches unless given."
    )


class SaveRequest(Given):
    """How winners are saved."""

    device: str | None = Field(default=None, max_length=40, description="Whose; the first device's unless given.")


class BadLineModel(BaseModel):
    """A line that could not be read."""

    line: int = Field(description="From 1.")
    reason: str


class MismatchModel(BaseModel):
    """A validator that differs."""

    name: str
    expected: str | None = Field(description="This build's; null when it has no such validator.")
    found: list[str] = Field(description="The file's: none when it lacks it, several when it contradicts itself.")


class LoadReport(BaseModel):
    """What became of the winners of a file."""

    name: str
    device: str
    merged: int = Field(description="Signatures that had no winner.")
    replaced: int = Field(description="Signatures whose winner the file's replaced.")
    kept: int = Field(description="Signatures whose winner in memory stayed.")
    pinned: int = Field(description="Signatures whose winner in memory is pinned, and stayed.")
    rejected: int = Field(description="Lines that could not be read.")
    bad_lines: list[BadLineModel] = Field(description="The first of them.")
    validators: dict[str, str]


class SaveReport(BaseModel):
    """What a file holds now, and how that differs from before."""

    name: str
    device: str
    winners: int = Field(description="In the file now.")
    added: int = Field(description="That it lacked.")
    replaced: int = Field(description="That it had with another kernel or time.")
    kept: int = Field(description="That others wrote, which this process does not know.")
    size: int = Field(description="In bytes.")
    etag: str
    validators: dict[str, str]
