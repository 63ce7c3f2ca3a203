"""The names of the files: where the device ordinal goes, and what a file's companions are called. Pure."""

__all__ = [
    "default_results_name",
    "default_untuned_name",
    "insert_ordinal",
    "rejected_name",
    "results_name",
    "sibling_name",
]


def _split(path: str) -> tuple[str, str, str]:
    """Return folder (with its slash), stem and extension (with its dot); a leading dot starts no extension."""
    folder, slash, base = path.rpartition("/")
    dot = base.rfind(".")
    if not base[: max(dot, 0)].strip("."):
        dot = len(base)
    return folder + slash, base[:dot], base[dot:]


def insert_ordinal(name: str, ordinal: str) -> str:
    """Return the file name for one device.

    The ordinal replaces the first `%d` of the base name, else goes before its last dot, else at its end;
    folders are never touched.
    """
    folder, stem, extension = _split(name)
    if "%d" in stem + extension:
        return folder + (stem + extension).replace("%d", ordinal, 1)
    return folder + stem + ordinal + extension


def default_results_name(device: str) -> str:
    """Return where a device's winners are kept when nothing else is set."""
    return insert_ordinal("tunableop_results.csv", device)


def results_name(configured: str, device: str) -> str:
    """Return where a device's winners are kept, by what the environment names, empty for nothing."""
    return insert_ordinal(configured, device) if configured else default_results_name(device)


def default_untuned_name(device: str) -> str:
    """Return where a device's untuned signatures are logged when nothing else is set."""
    return insert_ordinal("tunableop_untuned.csv", device)


def sibling_name(path: str, validators_digest: str) -> str:
    """Return where a build keeps its winners while the file at `path` is another build's."""
    folder, stem, extension = _split(path)
    return f"{folder}{stem}.{validators_digest}{extension}"


def rejected_name(path: str) -> str:
    """Return where lines are kept that were taken out of the file at `path` because nothing could read them."""
    return f"{path}.rejected"
