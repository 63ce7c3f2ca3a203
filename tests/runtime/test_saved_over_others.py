"""Two processes with one file: a save of one undoes nothing that the other has recorded or dropped meanwhile."""

import os
from pathlib import Path

import pytest

from tensorplay.database.csv_text import format_results
from tensorplay.database.filename import sibling_name
from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.database.validators import digest
from tensorplay.errors import ResultsFileWarning
from tensorplay.gemm import Signature
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.steered_results import SteeredResults

VALIDATORS = (Validator("A_DEVICE", "of some kind"),)
OTHERS = (Validator("A_DEVICE", "of another kind"),)
OLD, NEW = "host_scipy", "host_numpy"


def entry(number: int, kernel: str = OLD, time_ms: float = 1.0) -> Entry:
    return Entry("GemmTunableOp_Float32", f"taN_m{number}_n8_k8_bias0_dev0", kernel, time_ms)


def signature(number: int) -> Signature:
    return entry(number).signature


def file_with(path: Path, *entries: Entry) -> Path:
    ResultsStore(str(path), VALIDATORS).rewrite(entries)
    return path


def in_file(path: Path) -> dict[Signature, str]:
    return {each.signature: each.kernel for each in ResultsStore(str(path), VALIDATORS).load().entries}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return file_with(tmp_path / "results.csv", entry(1), entry(2), entry(3))


def process(path: Path, *, loaded: bool = True) -> SteeredResults:
    """Return what a fresh process has of a file."""
    made = SteeredResults("0", VALIDATORS, str(path), Listeners())
    if loaded:
        made.ensure_loaded()
    return made


def save(results: SteeredResults, how: str, path: Path) -> None:
    if how == "unnamed":
        assert results.write()
    elif how == "named":
        assert results.write(str(path))
    else:
        results.write_to(str(path))


@pytest.mark.parametrize("how", ["unnamed", "named", "rest"])
class TestWhatWasOnlyRead:
    def test_yields_to_what_another_process_has_measured_since(self, path: Path, how: str) -> None:
        reader, other = process(path), process(path)
        other.replace(entry(1, NEW), "measured here")
        save(reader, how, path)
        assert in_file(path) == {signature(1): NEW, signature(2): OLD, signature(3): OLD}

    def test_is_not_revived_where_another_process_has_forgotten_it(self, path: Path, how: str) -> None:
        reader, other = process(path), process(path)
        other.remove(signature(1))
        save(reader, how, path)
        assert in_file(path) == {signature(2): OLD, signature(3): OLD}
        other.clear()
        save(reader, how, path)
        assert in_file(path) == {}
        assert len(reader.results) == 3

    def test_is_all_there_again_after_the_file_was_deleted(self, path: Path, how: str) -> None:
        reader = process(path)
        path.unlink()
        save(reader, how, path)
        assert in_file(path) == {signature(1): OLD, signature(2): OLD, signature(3): OLD}

    def test_fills_the_sibling_when_another_build_has_written_over_the_file(self, path: Path, how: str) -> None:
        reader = process(path)
        path.write_text(format_results(OTHERS, [entry(4)]))
        before = path.read_bytes()
        save(reader, how, path)
        assert path.read_bytes() == before
        assert len(in_file(path)) == 3

    def test_is_seen_through_symbolic_links(self, path: Path, how: str) -> None:
        link = path.with_name("link.csv")
        link.symlink_to(path)
        reader, other = process(link), process(path)
        other.replace(entry(1, NEW), "measured here")
        other.remove(signature(2))
        save(reader, how, link if how == "unnamed" else path)
        assert in_file(path) == {signature(1): NEW, signature(3): OLD}


@pytest.mark.parametrize("how", ["unnamed", "named", "rest"])
class TestWhatIsOurs:
    def test_is_written_whatever_the_file_says(self, path: Path, how: str) -> None:
        ours, other = process(path), process(path)
        ours.record(entry(1, NEW), "measured here")
        ours.record(entry(2, NEW), "override")
        ours.replace(entry(3, NEW), "measured here")
        other.read(str(path), overwrite=True)
        for number in (1, 2, 3):
            other.remove(signature(number))
        save(ours, how, path)
        assert in_file(path) == {signature(1): NEW, signature(2): NEW, signature(3): NEW}

    def test_is_the_file_s_again_once_the_file_was_read_over_it(self, path: Path, how: str) -> None:
        ours, other = process(path), process(path)
        ours.record(entry(1, NEW, 0.5), "measured here")
        other.replace(entry(1, OLD, 0.25), "measured here")
        ours.read(str(path), overwrite=True)
        other.remove(signature(1))
        save(ours, how, path)
        assert in_file(path) == {signature(2): OLD, signature(3): OLD}

    def test_is_not_ours_any_more_once_it_is_forgotten_and_read_anew(self, path: Path, how: str) -> None:
        ours, other = process(path), process(path)
        ours.record(entry(4, NEW), "measured here")
        ours.remove(signature(4))
        other.record(entry(4), "measured here")
        ours.read(str(path), overwrite=False)
        other.remove(signature(4))
        save(ours, how, path)
        assert signature(4) not in in_file(path)


class TestAnotherFile:
    @pytest.mark.parametrize("how", ["named", "rest"])
    def test_gets_everything_over_what_it_says(self, path: Path, how: str) -> None:
        other = file_with(path.with_name("other.csv"), entry(1, NEW), entry(9, NEW))
        save(process(path), how, other)
        assert in_file(other) == {signature(1): OLD, signature(2): OLD, signature(3): OLD, signature(9): NEW}

    def test_gets_everything_when_winners_go_there_from_now_on(self, path: Path) -> None:
        results, other = process(path), file_with(path.with_name("other.csv"), entry(1, NEW))
        results.redirect(str(other))
        assert results.write()
        assert in_file(other) == {signature(1): OLD, signature(2): OLD, signature(3): OLD}

    @pytest.mark.parametrize("by_rest", [False, True])
    @pytest.mark.parametrize("overwrite", [False, True])
    def test_that_was_read_is_written_to_the_usual_one(self, path: Path, by_rest: bool, overwrite: bool) -> None:
        told = file_with(path.with_name("told.csv"), entry(1), entry(2, NEW), entry(4, NEW))
        results, other = process(path), process(path)
        other.clear()
        if by_rest:
            results.take(str(told), told.read_bytes(), overwrite=overwrite)
        else:
            assert results.read(str(told), overwrite=overwrite)
        assert results.write()
        # The third was read from the usual file alone, and so was the second where the other file did not count.
        expected = {signature(1): OLD, signature(2): NEW, signature(4): NEW}
        if not overwrite:
            del expected[signature(2)]
        assert in_file(path) == expected

    @pytest.mark.parametrize("by_rest", [False, True])
    def test_that_was_read_knows_better_about_its_own_winners_only(self, path: Path, by_rest: bool) -> None:
        told = file_with(path.with_name("told.csv"), entry(4), entry(5))
        results, other = process(path), process(told)
        if by_rest:
            results.take(str(told), told.read_bytes(), overwrite=False)
        else:
            results.read(str(told), overwrite=False)
        other.replace(entry(4, NEW), "measured here")
        other.remove(signature(5))
        other.record(entry(1, NEW), "measured here")
        assert results.write(str(told))
        assert in_file(told) == {signature(1): OLD, signature(2): OLD, signature(3): OLD, signature(4): NEW}

    def test_that_was_read_before_the_usual_one_is_no_less_another(self, path: Path) -> None:
        told = file_with(path.with_name("told.csv"), entry(1, NEW), entry(4, NEW))
        results, other = process(path, loaded=False), process(path)
        results.read(str(told), overwrite=False)
        results.ensure_loaded()
        other.remove(signature(2))
        assert results.write()
        assert in_file(path) == {signature(1): NEW, signature(3): OLD, signature(4): NEW}


class TestASibling:
    def test_s_winners_are_known_from_it(self, tmp_path: Path) -> None:
        path = tmp_path / "results.csv"
        path.write_text(format_results(OTHERS, [entry(7)]))
        ResultsStore(str(path), VALIDATORS).rewrite([entry(1), entry(2)])
        with pytest.warns(ResultsFileWarning, match="another build"):
            reader, other = process(path), process(path)
        other.replace(entry(1, NEW), "measured here")
        other.remove(signature(2))
        assert reader.write()
        assert in_file(path) == {signature(1): NEW}

    def test_that_is_read_beside_the_file_adds_nothing_that_is_gone_from_either(self, path: Path) -> None:
        sibling = Path(sibling_name(str(path), digest(VALIDATORS)))
        file_with(sibling, entry(4), entry(5))
        reader, other = process(path), process(path)
        other.remove(signature(1))
        other.remove(signature(4))
        assert reader.write()
        assert in_file(path) == {signature(2): OLD, signature(3): OLD, signature(5): OLD}

    def test_beside_a_file_that_cannot_be_written_gets_only_what_is_ours(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Root is refused nothing by a file's mode.
        monkeypatch.setattr(os, "access", lambda *_: False)
        reader = process(path)
        reader.record(entry(4, NEW), "measured here")
        assert reader.write()
        sibling = Path(sibling_name(str(path), digest(VALIDATORS)))
        assert "_m4_" in sibling.read_text()
        assert "_m1_" not in sibling.read_text()
        assert len(in_file(path)) == 4


class TestSeveralDevices:
    def test_put_all_that_they_had_read_back_into_a_file_that_is_gone(self, path: Path) -> None:
        ResultsStore(str(path), VALIDATORS).append(of_other := entry(4)._replace(params="taN_m4_n8_k8_bias0_dev1"))
        mine, others = process(path), process(path)
        others.results.remove(signature(1))
        mine.results.remove(of_other.signature)
        path.unlink()
        for each in (mine, others):
            assert each.write_beside([mine, others])
        assert set(in_file(path)) == {signature(1), signature(2), signature(3), of_other.signature}

    def test_revive_nothing_in_a_file_that_is_there(self, path: Path) -> None:
        mine, others = process(path), process(path)
        process(path).remove(signature(1))
        others.record(entry(2, NEW), "measured here")
        for each in (mine, others):
            assert each.write_beside([mine, others], str(path))
        assert in_file(path) == {signature(2): NEW, signature(3): OLD}

    def test_of_another_build_add_nothing(self, path: Path) -> None:
        theirs = SteeredResults("1", OTHERS, str(path), Listeners())
        mine = process(path)
        path.write_text(format_results(OTHERS, [entry(9)]))
        theirs.ensure_loaded()
        assert mine.write_beside([theirs, mine])
        assert set(in_file(path)) == {signature(1), signature(2), signature(3)}


def test_a_sibling_that_was_read_under_its_own_name_knows_better_too(path: Path) -> None:
    sibling = file_with(Path(sibling_name(str(path), digest(VALIDATORS))), entry(1), entry(2))
    path.write_text(format_results(OTHERS, [entry(9)]))
    results = process(path.with_name("other.csv"))
    results.read(str(sibling), overwrite=False)
    process(sibling).remove(signature(1))
    process(sibling).replace(entry(2, NEW), "measured here")
    assert results.write(str(path))
    assert in_file(sibling) == {signature(2): NEW}


def test_what_could_not_be_written_yet_is_ours(path: Path) -> None:
    folder = path.with_name("missing")
    results = process(folder / "results.csv")
    with pytest.warns(ResultsFileWarning, match="cannot write"):
        results.record(entry(1, NEW), "measured here")
    folder.mkdir()
    file_with(folder / "results.csv", entry(1), entry(2))
    assert results.write()
    assert in_file(folder / "results.csv") == {signature(1): NEW, signature(2): OLD}
