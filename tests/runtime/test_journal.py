"""Who knows a revision learns what changed behind it, or that this is not known any more."""

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.gemm import Signature
from tensorplay.runtime.journal import MOST_CHANGES, Journal

CHANGES = st.lists(st.one_of(st.integers(0, 5), st.none()), max_size=40)


@given(CHANGES, CHANGES)
def test_what_changed_behind_a_revision_is_told_or_not_known(before: list[int | None], after: list[int | None]) -> None:
    journal = Journal()

    def make(changes: list[int | None]) -> None:
        for change in changes:
            if change is None:
                journal.note_many()
            else:
                journal.note(Signature("op", str(change)))

    make(before)
    seen = journal.revision
    make(after)
    expected = None if None in after else frozenset(Signature("op", str(change)) for change in after)
    assert journal.since(seen) == expected
    assert journal.since(journal.revision) == frozenset()
    assert journal.revision == len(before) + len(after)


def test_changes_are_bounded() -> None:
    journal = Journal()
    for number in range(MOST_CHANGES + 2):
        journal.note(Signature("op", str(number)))
    assert journal.since(1) is None
    last = journal.since(2)
    assert last is not None
    assert len(last) == MOST_CHANGES
