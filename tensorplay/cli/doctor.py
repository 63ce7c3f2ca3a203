"""`tensorplay doctor`: what tuning would find on this machine, in this environment and folder, and what is wrong."""

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from tensorplay.cli.exit_code import FAILED
from tensorplay.cli.render import MISSING, count, printable
from tensorplay.cli.table import Column, print_table
from tensorplay.version import __version__

if TYPE_CHECKING:
    from tensorplay.cli.examination import Examination
    from tensorplay.cli.file_check import FileCheck
    from tensorplay.cli.machine import BlasLibrary
    from tensorplay.runtime.setting_kind import SettingValue
    from tensorplay.runtime.settings import SettingState

__all__ = ["doctor"]

_MOST_LINES = 10
_SETTINGS = (Column("setting"), Column("value"), Column("origin"), Column("variable"))


@click.command(
    short_help="Show device, libraries, settings, files, and what is wrong.",
    epilog="\b\nExample:\n  TP_TUNABLEOP_FILENAME=tuned/results.csv tensorplay doctor",
)
@click.option("--settings", "only_settings", is_flag=True, help="Only say what each setting does and allows.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.pass_context
def doctor(ctx: click.Context, *, only_settings: bool, as_json: bool) -> None:
    """Show device, libraries, settings and files as a program started here would find them, and what is wrong.

    Nothing is made, changed or measured. The exit code is 1 when something is wrong, else 0.
    """
    # Imported here, since `--help` need not wait for NumPy.
    from tensorplay.cli.examination import examine  # noqa: PLC0415 - see above

    examination = examine(os.environ)
    if as_json:
        click.echo(json.dumps(_document(examination), indent=2))
    elif only_settings:
        click.echo("\n".join(_explained(examination.settings)))
    else:
        _print(examination)
    ctx.exit(FAILED if examination.findings and not only_settings else 0)


def _print(examination: "Examination") -> None:
    for line in _machine(examination):
        click.echo(line)
    click.echo("\nsettings")
    print_table(_SETTINGS, [[printable(cell) for cell in _cells(state)] for state in examination.settings])
    click.echo("\nfiles")
    for file in examination.files.listed:
        for line in _file(file, is_target=file.path == examination.files.target):
            click.echo(f"  {line}")
    click.echo("\nvalidators of this build")
    for validator in examination.build.validators:
        click.echo(f"  {printable(validator.name)}: {printable(validator.value)}")
    click.echo()
    for note in examination.notes:
        click.echo(f"note: {printable(note)}")
    for line in _verdict(examination):
        click.echo(line)


def _machine(examination: "Examination") -> Iterator[str]:
    machine, build = examination.machine, examination.build
    cores = count(machine.cores, "core")
    if machine.usable_cores != machine.cores:
        cores += f", {machine.usable_cores} of them for this process"
    yield f"tensorplay {__version__}"
    yield f"  device: {printable(build.device)} (backend {build.backend.name})"
    reason = _why_no_gpu(examination)
    if reason is not None:
        yield f"  gpu: not used: {printable(reason)}"
    yield f"  processor: {printable(machine.processor)}, {cores}"
    missing = f" (not installed: {', '.join(build.missing_sources)})" if build.missing_sources else ""
    yield f"  sources of candidates: {', '.join(build.sources)}{missing}"
    yield f"  extensions in C: {_extensions(machine.extensions)}"
    yield f"  system: {printable(machine.system)}"
    yield f"  python: {machine.python} ({printable(machine.executable)})"
    yield f"  numpy: {machine.numpy}"
    for library in machine.blas:
        yield f"  blas: {printable(_blas(library))}"
    if not machine.blas:
        yield "  blas: none that threads can be set for"
    for name, version in machine.optional.items():
        yield f"  {name}: {printable(version) if version else 'not installed'}"
    for name, version in machine.on_a_gpu.items():
        yield f"  {name}: {printable(version)}"


def _why_no_gpu(examination: "Examination") -> str | None:
    """Return why products run on the host unless their operands are on a GPU, None where a GPU is the default."""
    if examination.build.backend.name != "host":
        return None
    # The driver may work although the files that say so are not there.
    return examination.machine.why_no_gpu or "no CUDA device is visible"


def _extensions(extensions: dict[str, bool]) -> str:
    """Return which are in use and, as they cost time in each call, which are not."""
    used, left_out = (
        ", ".join(name.rpartition(".")[2] for name, is_used in extensions.items() if is_used is wanted)
        for wanted in (True, False)
    )
    return (used or "none") + (f" (left out: {left_out}; docs/install.md says why)" if left_out else "")


def _blas(library: "BlasLibrary") -> str:
    facts = [f"{library.name} {library.version}".strip()]
    facts += [count(library.threads, "thread")] if library.threads else []
    facts += [library.architecture] if library.architecture else []
    return f"{', '.join(facts)} ({library.path})"


def _cells(state: "SettingState") -> list[str]:
    return [state.name, _text(state.value), state.origin, state.variable]


def _text(value: "SettingValue") -> str:
    if isinstance(value, tuple):
        value = ",".join(value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return MISSING if value is None or value == "" else str(value)


def _explained(settings: "Sequence[SettingState]") -> Iterator[str]:
    """Yield the help of every setting, from its declaration."""
    for state in settings:
        device = "" if state.device == "all" else f" Only on {state.device}."
        yield printable(f"{state.variable} = {_text(state.value)} ({state.origin})")
        yield f"    {state.help}{device}"
        yield f"    default {_text(state.default)}; allowed: {state.allowed}"


def _file(file: "FileCheck", *, is_target: bool) -> Iterator[str]:
    yield f"{file.role}: {printable(file.path)}"
    yield f"  {', '.join(_state(file, is_target=is_target))}"
    for difference in file.differences:
        yield f"  differs: {printable(str(difference))}"
    for line in file.bad_lines[:_MOST_LINES]:
        yield f"  line {line.number}: {printable(line.reason)}"
    if len(file.bad_lines) > _MOST_LINES:
        yield f"  {len(file.bad_lines) - _MOST_LINES} more lines could not be read"


def _state(file: "FileCheck", *, is_target: bool) -> Iterator[str]:
    if file.problem:
        yield f"cannot be read: {printable(file.problem)}"
    elif not file.exists:
        yield "does not exist yet"
    elif file.kind is not None:
        yield count(file.untuned, "untuned signature") if file.role == "untuned" else count(file.winners, "winner")
        if file.undecided:
            yield f"{file.undecided} of them never really compared"
    if file.differences:
        yield "another build's, not used"
    yield "writable" if file.writable else "not writable"
    if is_target:
        yield "new winners go here"


def _verdict(examination: "Examination") -> Iterator[str]:
    found = examination.findings
    if not found:
        yield "nothing is wrong"
        return
    yield f"{count(len(found), 'thing is', 'things are')} wrong:"
    for number, finding in enumerate(found, 1):
        yield f"  {number}. {printable(finding.what)}"
        yield f"     {printable(finding.remedy)}"


def _document(examination: "Examination") -> dict[str, object]:
    machine, build = examination.machine, examination.build
    return {
        "ok": not examination.findings,
        "device": {
            "name": build.device,
            "backend": build.backend.name,
            "sources": list(build.sources),
            "missing_sources": list(build.missing_sources),
        },
        "machine": machine._asdict()
        | {"blas": [library._asdict() for library in machine.blas], "why_no_gpu": _why_no_gpu(examination)},
        "settings": [state._asdict() for state in examination.settings],
        "ignored": [problem._asdict() for problem in examination.ignored],
        "files": [_file_document(file, examination.files.target) for file in examination.files.listed],
        "validators": [validator._asdict() for validator in build.validators],
        "notes": examination.notes,
        "findings": [finding._asdict() for finding in examination.findings],
    }


def _file_document(file: "FileCheck", target: str) -> dict[str, object]:
    return {
        "role": file.role,
        "path": file.path,
        "exists": file.exists,
        "readable": file.readable,
        "writable": file.writable,
        "problem": file.problem or None,
        "kind": file.kind.value if file.kind else None,
        "winners": file.winners,
        "untuned": file.untuned,
        "undecided": file.undecided,
        "matches_this_build": file.is_ours,
        "differences": [difference._asdict() for difference in file.differences],
        "bad_lines": [{"number": line.number, "text": line.text, "reason": line.reason} for line in file.bad_lines],
        "new_winners_go_here": file.path == target,
    }
