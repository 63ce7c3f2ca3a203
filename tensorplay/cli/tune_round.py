"""Which results file the winner of each signature goes to, and which signatures are measured at the same time."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tensorplay.cli.ordinal import configured_name, held_ordinal
from tensorplay.cli.tuning_file import TuningFile
from tensorplay.database.filename import default_results_name, insert_ordinal, results_name, sibling_name
from tensorplay.database.validators import digest
from tensorplay.gemm import Signature, parse_signature

__all__ = ["TuneRound", "Wanted", "file_of", "home_of", "rounds"]


class Wanted(NamedTuple):
    """A signature to measure, and the results file that its winner goes back to; None for one of an untuned file."""

    signature: Signature
    home: str | None = None


class TuneRound(NamedTuple):
    """Signatures that are measured at once: of each device those of one results file.

    Attributes
    ----------
    targets : dict of str to str
        The results file of each device, by its absolute path.
    signatures : tuple of Signature
        Each once.
    """

    targets: dict[str, str]
    signatures: tuple[Signature, ...]

    @staticmethod
    def device_of(signature: Signature) -> str:
        """Return the device that a signature is measured on."""
        return parse_signature(*signature).device


def file_of(name: str, device: str, devices: Iterable[str]) -> str:
    """Return the results file of a device, from what a person names.

    A file that is there, and whose name ends with the ordinal of one of the devices, is that device's file, and its
    name with their ordinals those of the others. In any other name the ordinal is inserted.
    """
    if not name:
        return default_results_name(device)
    configured = configured_name(name)
    is_one_of_them = configured is not None and held_ordinal(name) in set(devices) and Path(name).is_file()
    return insert_ordinal(configured if configured is not None and is_one_of_them else name, device)


def rounds(wanted: Iterable[Wanted], name: str, *, given: str | None = None) -> list[TuneRound]:
    """Return what to measure one after another, so that no device measures twice at a time.

    Parameters
    ----------
    wanted : iterable of Wanted
        A signature of two results files is measured for each; what no results file holds goes to the named one.
    name : str
        The setting `filename`; empty for the default.
    given : str, optional
        The results file that a person named for all of them, whatever files they were found in.

    Raises
    ------
    SignatureError
        When one is no signature.
    """
    found = [(each, TuneRound.device_of(each.signature)) for each in wanted]
    devices = {device for _, device in found}

    def target(each: Wanted, device: str) -> str:
        if given is not None:
            return file_of(given, device, devices)
        return results_name(name, device) if each.home is None else each.home

    return _in_turn(found, target)


def home_of(file: TuningFile) -> str:
    """Return the file to name so that winners go back to a results file: of a sibling the one that it stands in for."""
    build = digest(file.validators)
    path = Path(file.path)
    main = path.with_name(f"{path.stem.removesuffix(f'.{build}')}{path.suffix}")
    is_sibling = path.name == Path(sibling_name(str(main), build)).name
    return str(main) if is_sibling and main.exists() else file.path


def _in_turn(found: Sequence[tuple[Wanted, str]], target: Callable[[Wanted, str], str]) -> list[TuneRound]:
    # By device, then by file whatever it is called: its path, and the signatures.
    parts: dict[str, dict[str, tuple[str, dict[Signature, None]]]] = {}
    for each, device in found:
        path = str(Path(target(each, device)).absolute())
        files = parts.setdefault(device, {})
        files.setdefault(os.path.realpath(path), (path, {}))[1][each.signature] = None
    turns: list[TuneRound] = []
    for number in range(max(map(len, parts.values()), default=0)):
        now = {device: list(files.values())[number] for device, files in parts.items() if number < len(files)}
        signatures = tuple(signature for _, held in now.values() for signature in held)
        turns.append(TuneRound({device: path for device, (path, _) in now.items()}, signatures))
    return turns
