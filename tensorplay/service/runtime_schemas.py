"""What the REST API tells of the runtime and its devices, as its OpenAPI document describes it."""

from pydantic import BaseModel, Field

__all__ = ["DeviceModel", "Reresolved", "RuntimeModel"]


class DeviceModel(BaseModel):
    """A device that was met, by what is known without touching it."""

    device: str = Field(description="An ordinal, or `cpu`.", examples=["0"])
    is_known: bool = Field(description="Whether something here runs it; over recorded files, whether they name it.")
    validators: dict[str, str] = Field(description="The facts that a results file must match.")
    files: list[str] = Field(
        description="The results files of it, by their names.", examples=[["tunableop_results0.csv"]]
    )
    results: int = Field(description="Winners.")
    untuned: int = Field(description="Signatures without a winner.")
    rejections: int = Field(description="Recorded winners that did not run, and were not measured anew.")


class RuntimeModel(BaseModel):
    """The runtime of the process that answers."""

    version: str
    python: str
    packages: dict[str, str] = Field(description="Versions of what is installed and brings candidates or arrays.")
    plans: int = Field(description="How many layouts of operands are ready to run without being decided anew.")
    spent_tuning_seconds: float = Field(description="Time that this process has measured for.")
    workspace_mib: int = Field(description="Ceiling of the scratch memory of one product.")
    revisions: dict[str, int] = Field(description="Of every list: each grows when its list changes.")
    variables: list[str] = Field(description="Environment variables that set something, by their names alone.")


class Reresolved(BaseModel):
    """What was let go of."""

    plans: int = Field(description="How many were ready to run, and are decided anew at their next call.")
