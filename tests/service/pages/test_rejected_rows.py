"""A refused file is one row, and counts as one."""

from tensorplay.service.pages.rejected_rows import rejected_rows
from tensorplay.service.schemas import RejectionModel


def _mismatch(file: str, name: str) -> RejectionModel:
    reason = f"the file was written by another build or device: {name}: expected '1', found '2'"
    return RejectionModel(
        id=f"{file}{name}",
        result_id=None,
        code="validator_mismatch",
        reason=reason,
        file=file,
        expected="1",
        found=["2"],
    )


def test_all_that_differs_of_a_file_is_one_row() -> None:
    winner = RejectionModel(
        id="w", result_id="w", code="not_rebuildable", reason="gone", op="x", params="y", kernel="z"
    )
    line = RejectionModel(id="l", result_id=None, code="unparsable", reason="too few", file="a.csv", line=3)
    found = [winner, _mismatch("a.csv", "A"), _mismatch("b.csv", "A"), _mismatch("a.csv", "B"), line]
    rows = rejected_rows(found)
    assert [(row.model.id, [name for name, _ in row.mismatches]) for row in rows] == [
        ("w", []), ("a.csvA", ["A", "B"]), ("b.csvA", ["A"]), ("l", []),
    ]  # fmt: skip
