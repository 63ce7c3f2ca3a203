"""Everything that `tensorplay doctor` looks at, gathered without making or changing any file."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tensorplay.cli.file_check import check_log, check_results, check_untuned
from tensorplay.cli.finding import FileUse, Finding, Misnamed, findings, notes
from tensorplay.cli.machine import Machine, this_machine
from tensorplay.cli.ordinal import configured_name, held_ordinal
from tensorplay.cli.this_build import ThisBuild, this_build
from tensorplay.database.filename import (
    default_results_name,
    default_untuned_name,
    insert_ordinal,
    sibling_name,
)
from tensorplay.database.store import ResultsStore
from tensorplay.database.validators import digest
from tensorplay.errors import SettingWarning
from tensorplay.runtime.environment import SettingProblem
from tensorplay.runtime.settings import Settings, SettingState

__all__ = ["Examination", "examine"]


class Examination(NamedTuple):
    """The facts, and what follows from them."""

    machine: Machine
    build: ThisBuild
    settings: list[SettingState]
    ignored: list[SettingProblem]
    files: FileUse
    findings: list[Finding]
    notes: list[str]


def examine(environ: Mapping[str, str]) -> Examination:
    """Return what a process that starts in this environment and working directory would find."""
    with warnings.catch_warnings():
        # They are shown as findings.
        warnings.simplefilter("ignore", SettingWarning)
        settings = Settings(environ)
    build = this_build()
    states = settings.describe()
    values = {state.name: state.value for state in states}
    files = _files(settings, build)
    return Examination(
        machine=this_machine(),
        build=build,
        settings=states,
        ignored=settings.problems(),
        files=files,
        findings=findings(values, settings.problems(), build.sources, files, missing=build.missing_sources),
        notes=list(notes(values, files)),
    )


def _files(settings: Settings, build: ThisBuild) -> FileUse:
    results = _absolute(settings.filename, default_results_name(build.device), build.device)
    untuned = _absolute(settings.untuned_filename, default_untuned_name(build.device), build.device)
    sibling = sibling_name(results, digest(build.validators))
    log = settings.verbose_filename
    store = ResultsStore(results, build.validators)
    store.load()
    checked = check_results("results", results, build.validators)
    return FileUse(
        results=checked,
        sibling=check_results("results, this build's", sibling, build.validators),
        untuned=check_untuned(untuned),
        log=None if log in {"err", "out"} else check_log(str(Path(log).absolute())),
        target=store.target,
        misnamed=None if checked.exists or Path(sibling).exists() else _misnamed(settings.filename, build.device),
    )


def _misnamed(configured: str, device: str) -> Misnamed | None:
    """Return the file that is called as the setting says it, which the runtime never reads."""
    if not (configured and Path(configured).is_file()):
        return None
    means = insert_ordinal(configured, device)
    right = configured_name(configured) if held_ordinal(configured) == device else None
    rename = f"rename it to {Path(means).name}, and what lies beside it too"
    return Misnamed(
        path=str(Path(configured).absolute()),
        remedy=f"set TP_TUNABLEOP_FILENAME={right}: the device's ordinal is inserted" if right else rename,
    )


def _absolute(configured: str, default: str, device: str) -> str:
    # A name from the environment gets the ordinal, as the runtime does it.
    return str(Path(insert_ordinal(configured, device) if configured else default).absolute())
