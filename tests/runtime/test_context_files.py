"""Where winners are kept: names, merging, foreign builds, disks that refuse."""

from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tensorplay.database.csv_text import FORMAT_VALIDATOR
from tensorplay.errors import ResultsFileWarning
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
ON = {"TP_TUNABLEOP_ENABLED": "1"}


class TestTheName:
    def test_is_empty_until_it_is_set_or_first_used(self, context: TuningContext, call: Any) -> None:
        assert context.get_filename() == ""
        call(context)
        assert context.get_filename() == "tunableop_results0.csv"

    def test_from_the_environment_always_takes_the_ordinal(self, make_context: Any, call: Any, tmp_path: Path) -> None:
        context = make_context({**ON, "TP_TUNABLEOP_FILENAME": "tune.csv"})
        assert context.get_filename() == "tune0.csv"
        call(context)
        assert (tmp_path / "tune0.csv").exists()

    def test_from_a_call_takes_it_only_when_asked(self, context: TuningContext) -> None:
        context.set_filename("plain.csv")
        assert context.get_filename() == "plain.csv"
        context.set_filename("tune%d.csv", insert_device_ordinal=True)
        assert context.get_filename() == "tune0.csv"
        context.set_filename("")
        assert context.get_filename() == ""

    def test_set_after_the_first_product_redirects_what_is_found_later(
        self, context: TuningContext, call: Any, tmp_path: Path, problem: GemmProblem
    ) -> None:
        call(context)
        context.set_filename("later.csv")
        context.override(*signature_of(problem), SLOW)
        assert SLOW in (tmp_path / "later.csv").read_text()
        assert SLOW not in (tmp_path / "tunableop_results0.csv").read_text()


class TestReadFile:
    def test_merges_and_memory_wins_unless_told_otherwise(
        self, context: TuningContext, call: Any, tmp_path: Path, problem: GemmProblem
    ) -> None:
        call(context)
        other = tmp_path / "other.csv"
        other.write_text((tmp_path / "tunableop_results0.csv").read_text().replace(FAST, SLOW))
        assert context.read_file(str(other))
        assert [row[2] for row in context.get_results()] == [FAST]
        assert context.read_file(str(other), overwrite=True)
        assert [row[2] for row in context.get_results()] == [SLOW]

    def test_finds_nothing_new_in_its_own_file(self, make_context: Any, tmp_path: Path, call: Any) -> None:
        # More digits than a file keeps.
        backend = ScriptedBackend({FIRST: 1.0, FAST: 0.63964225})
        context = make_context(ON, on=backend)
        call(context, on=backend)
        path = tmp_path / "tunableop_results0.csv"
        before = context.recorded()
        for overwrite in (False, True):
            report = context.load_results("0", str(path), path.read_bytes(), overwrite=overwrite)
            assert (report.merged, report.replaced, report.kept) == (0, 0, 0)
        assert context.recorded() == before
        assert before[0].origin == "measured here"

    def test_of_a_missing_file_is_false_and_no_error(self, context: TuningContext) -> None:
        assert not context.read_file("nowhere.csv")

    def test_replaces_what_runs_at_once(
        self, context: TuningContext, call: Any, tmp_path: Path, backend: ScriptedBackend
    ) -> None:
        call(context)
        other = tmp_path / "other.csv"
        other.write_text((tmp_path / "tunableop_results0.csv").read_text().replace(FAST, SLOW))
        context.read_file(str(other), overwrite=True)
        call(context)
        assert backend.runs == [FAST, SLOW]


class TestWriteFile:
    def test_puts_every_winner_into_a_file_of_another_name(
        self, context: TuningContext, call: Any, tmp_path: Path
    ) -> None:
        call(context)
        assert context.write_file("copy.csv")
        assert (tmp_path / "copy.csv").read_text() == (tmp_path / "tunableop_results0.csv").read_text()

    def test_loses_nothing_that_another_process_recorded_meanwhile(
        self, make_context: Any, call: Any, tmp_path: Path, problem: GemmProblem
    ) -> None:
        first = make_context()
        call(first)
        other = "taN_m9_n9_k9_bias0_dev0"
        make_context().override("GemmTunableOp_Float32", other, SLOW)
        assert first.write_file()
        text = (tmp_path / "tunableop_results0.csv").read_text()
        assert other in text
        assert signature_of(problem).params in text

    def test_that_cannot_be_done_is_false_and_warns(self, context: TuningContext, call: Any) -> None:
        call(context)
        with pytest.warns(ResultsFileWarning, match="cannot write"):
            assert not context.write_file("no/such/folder/x.csv")


class TestAnotherBuild:
    def test_s_file_is_left_byte_for_byte_and_ours_is_read_at_the_next_start(
        self, make_context: Any, call: Any, tmp_path: Path, backend: ScriptedBackend
    ) -> None:
        theirs = ScriptedBackend({FIRST: 1.0, SLOW: 0.5}, version="theirs")
        call(make_context(on=theirs), on=theirs)
        main = tmp_path / "tunableop_results0.csv"
        before = main.read_bytes()
        first = make_context()
        with pytest.warns(ResultsFileWarning, match=r"SCRIPTED_VERSION.*1.*theirs"):
            call(first)
        assert main.read_bytes() == before
        second = make_context()
        with pytest.warns(ResultsFileWarning, match="another build"):
            call(second)
        assert (second.stats()["measured"], second.stats()["replayed"]) == (0, 1)
        assert main.read_bytes() == before
        third = make_context(on=theirs)
        call(third, on=theirs)
        assert third.stats()["measured"] == 0

    def test_s_file_changes_nothing_when_it_is_read_by_name(
        self, make_context: Any, call: Any, context: TuningContext
    ) -> None:
        theirs = ScriptedBackend({FIRST: 1.0}, version="theirs")
        foreign = make_context(on=theirs)
        foreign.set_filename("theirs.csv")
        call(foreign, on=theirs)
        with pytest.warns(ResultsFileWarning, match="another build"):
            assert not context.read_file("theirs.csv")
        assert context.get_results() == []


class TestADiskThatRefuses:
    def test_keeps_the_winner_in_memory_and_writes_it_when_it_can_be(
        self, make_context: Any, call: Any, tmp_path: Path, backend: ScriptedBackend
    ) -> None:
        context = make_context({**ON, "TP_TUNABLEOP_FILENAME": "missing/tune.csv"})
        with pytest.warns(ResultsFileWarning, match="cannot write"):
            call(context)
        call(context)
        assert backend.runs == [FAST, FAST]
        (tmp_path / "missing").mkdir()
        context.close()
        assert FAST in (tmp_path / "missing" / "tune0.csv").read_text()

    def test_is_not_asked_again_at_exit_when_told_so(self, make_context: Any, call: Any, tmp_path: Path) -> None:
        context = make_context({**ON, "TP_TUNABLEOP_FILENAME": "missing/tune.csv"})
        with pytest.warns(ResultsFileWarning, match="cannot write"):
            call(context)
        (tmp_path / "missing").mkdir()
        context.write_file_on_exit(False)
        context.close()
        assert list((tmp_path / "missing").iterdir()) == []

    def test_raises_nothing_where_warnings_are_errors(
        self, make_context: Any, call: Any, recwarn: pytest.WarningsRecorder
    ) -> None:
        import warnings

        context = make_context({**ON, "TP_TUNABLEOP_FILENAME": "missing/tune.csv"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(context)
        assert len(context.get_results()) == 1


class TestUntuned:
    def test_signatures_are_logged_once_also_over_reruns(
        self, make_context: Any, call: Any, tmp_path: Path, problem: GemmProblem
    ) -> None:
        environ = {**ON, "TP_TUNABLEOP_TUNING": "0", "TP_TUNABLEOP_RECORD_UNTUNED": "1"}
        for _ in range(2):
            context = make_context(environ)
            call(context)
            call(context)
        assert (tmp_path / "tunableop_untuned0.csv").read_text() == ",".join(signature_of(problem)) + "\n"

    def test_go_to_the_named_file_with_the_ordinal(self, make_context: Any, call: Any, tmp_path: Path) -> None:
        environ = {**ON, "TP_TUNABLEOP_TUNING": "0", "TP_TUNABLEOP_RECORD_UNTUNED": "1"}
        call(make_context({**environ, "TP_TUNABLEOP_UNTUNED_FILENAME": "todo.csv"}))
        assert (tmp_path / "todo0.csv").exists()

    def test_are_logged_when_recording_starts_after_they_were_met(
        self, make_context: Any, call: Any, tmp_path: Path
    ) -> None:
        context = make_context({**ON, "TP_TUNABLEOP_TUNING": "0"})
        call(context)
        assert not (tmp_path / "tunableop_untuned0.csv").exists()
        context.record_untuned_enable()
        call(context)
        assert (tmp_path / "tunableop_untuned0.csv").exists()

    def test_that_are_measured_are_not_untuned(self, make_context: Any, call: Any, tmp_path: Path) -> None:
        call(make_context({**ON, "TP_TUNABLEOP_RECORD_UNTUNED": "1"}))
        assert not (tmp_path / "tunableop_untuned0.csv").exists()


def test_validators_begin_with_the_format_and_name_the_device(context: TuningContext) -> None:
    validators = dict(context.get_validators())
    assert validators[FORMAT_VALIDATOR.name] == FORMAT_VALIDATOR.value
    assert validators["SCRIPTED_DEVICE"] == "device, number 0"


def test_the_rotating_buffer_is_told_in_mib_rounded_up(context: TuningContext) -> None:
    assert context.get_rotating_buffer_size() == 4
    context.set_rotating_buffer_size(7)
    assert context.get_rotating_buffer_size() == 7
    context.set_rotating_buffer_size(0)
    assert context.get_rotating_buffer_size() == 0
    context.set_rotating_buffer_size(None)
    assert context.get_rotating_buffer_size() == 4


def test_a_lock_that_somebody_holds_delays_a_product_and_loses_nothing(
    context: TuningContext, call: Any, tmp_path: Path
) -> None:
    with FileLock(tmp_path / "tunableop_results0.csv.lock"), pytest.warns(ResultsFileWarning, match="cannot write"):
        call(context)
    context.close()
    assert FAST in (tmp_path / "tunableop_results0.csv").read_text()


def test_after_a_wait_in_vain_products_do_not_wait_again_so_soon(
    context: TuningContext, call: Any, tmp_path: Path, problem: GemmProblem
) -> None:
    with FileLock(tmp_path / "tunableop_results0.csv.lock"):
        with pytest.warns(ResultsFileWarning, match="cannot write"):
            call(context)
        device = context._devices["0"]
        kept = device._not_before
        context.override("GemmTunableOp_Float32", "taN_m9_n9_k9_bias0_dev0", SLOW)
        assert device._not_before == kept
    context.close()
    text = (tmp_path / "tunableop_results0.csv").read_text()
    assert FAST in text
    assert SLOW in text


def test_a_relative_name_means_one_file_however_often_the_process_changes_its_folder(
    make_context: Any, call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: GemmProblem
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    context = TuningContext(environ=ON, backends={"0": (backend := ScriptedBackend({FIRST: 1.0, FAST: 0.5}))})
    monkeypatch.chdir(here)
    context.set_filename("rel.csv")
    call(context, on=backend)
    monkeypatch.chdir(there)
    assert context.read_file()
    assert context.write_file()
    assert list(there.iterdir()) == []
    context.set_filename("")
    context.set_filename("rel.csv")
    context.override(*signature_of(problem), FIRST)
    assert FIRST in (there / "rel.csv").read_text()


def test_a_working_directory_that_is_gone_stops_no_product(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    backend = ScriptedBackend({FIRST: 1.0, FAST: 0.5})
    context = TuningContext(environ=ON, backends={"0": backend})
    with pytest.warns(ResultsFileWarning, match="does not exist any more"):
        call(context, on=backend)
    call(context, on=backend)
    assert backend.runs == [FAST, FAST]
    context.set_filename("x.csv")
