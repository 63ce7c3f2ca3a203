"""The folder of the results: what is ours is told by its first lines, and read once in a state."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import result_files
from tensorplay.service.result_files import FoundFile, ResultFiles
from tensorplay.service.routes.files import _model_of

OURS = "Validator,A,b\n"


def names(files: ResultFiles) -> list[str]:
    return [each.name for each in files.listed() if each.etag is not None]


def test_the_first_lines_say_whether_a_file_is_ours(
    context: TuningContext, run: Callable[[int], str], tmp_path: Path
) -> None:
    run(4)
    (tmp_path / "late.csv").write_text("x,y,z\n" * 100 + OURS)
    (tmp_path / "noted.csv").write_bytes(b"\xef\xbb\xbf" + b"# a note\n\n" * 100 + OURS.encode())
    (tmp_path / "soon.csv").write_text("x,y,z\n" + OURS + "y,z\n" * 30_000)
    assert [each for each in names(ResultFiles(context)) if not each.startswith("tunableop")] == [
        "noted.csv",
        "soon.csv",
    ]


def test_what_has_not_changed_is_not_read_again_however_many_there_are(
    context: TuningContext, run: Callable[[int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(4)
    for number in range(4_200):
        (tmp_path / f"d{number}.csv").touch()
    (tmp_path / "z.csv").write_text(OURS)
    files = ResultFiles(context)
    before = names(files)
    assert "z.csv" in before

    def fail(*_: object) -> None:
        raise OSError("nothing is to be opened")

    monkeypatch.setattr(result_files, "LineFile", fail)
    assert names(files) == before
    (tmp_path / "z.csv").write_text(OURS * 2)
    assert "z.csv" not in names(files)


def test_a_date_of_no_year_that_can_be_written_is_left_out() -> None:
    found = FoundFile("a.csv", "/", "results", None, 1, 400_000_000_000 * 10**9, '"f"')
    assert _model_of(found, []).modified is None
