"""Naming the results file while a process runs: what counts at which moment, and who hears of it."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.errors import SettingError
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
OP = "GemmTunableOp_Float32"
MakeContext = Callable[..., TuningContext]


def on_filename(context: TuningContext, act: Callable[[], object]) -> None:
    def hear(event: str, detail: Mapping[str, object]) -> None:
        if event == "setting" and detail["name"] == "filename":
            act()

    context.listeners.add(hear)


def test_a_winner_of_the_moment_of_the_change_is_in_the_file_with_the_ordinal(
    context: TuningContext, call: Any, tmp_path: Path
) -> None:
    call(context)
    on_filename(context, lambda: context.override(OP, "taN_m9_n9_k9_bias0_dev0", SLOW))
    context.set_filename("t.csv", insert_device_ordinal=True)
    assert context.get_filename() == "t0.csv"
    assert SLOW in (tmp_path / "t0.csv").read_text()
    assert not (tmp_path / "t.csv").exists()


def test_whoever_hears_of_the_change_may_wait_for_another_thread_that_asks_the_context(
    context: TuningContext, call: Any
) -> None:
    call(context)
    answers: list[str] = []

    def ask() -> None:
        thread = threading.Thread(target=lambda: answers.append(context.get_filename()), daemon=True)
        thread.start()
        thread.join(20)

    on_filename(context, ask)
    context.set_filename("t.csv")
    assert answers == ["t.csv"]


def test_what_is_written_before_the_change_is_told_while_no_lock_is_held(
    context: TuningContext, call: Any, problem: GemmProblem, tmp_path: Path
) -> None:
    call(context)
    path, answers = tmp_path / "tunableop_results0.csv", list[str]()
    before = path.read_bytes()
    path.unlink()
    path.mkdir()
    sibling = tmp_path / f"tunableop_results0.{context._devices['0'].build}.csv"
    sibling.mkdir()
    with pytest.warns(UserWarning, match="cannot write"):
        context.forget(*signature_of(problem))
    path.rmdir()
    sibling.rmdir()
    path.write_bytes(before)

    def hear(event: str, detail: Mapping[str, object]) -> None:
        if event == "file" and detail["action"] == "written":
            thread = threading.Thread(target=lambda: answers.append(context.get_filename()), daemon=True)
            thread.start()
            thread.join(20)

    context.listeners.add(hear)
    context.set_filename("t.csv")
    assert answers == ["t.csv"]
    assert FAST not in path.read_text()


def test_a_name_that_is_none_changes_nothing(context: TuningContext) -> None:
    context.set_filename("t.csv", insert_device_ordinal=True)
    for name in (["t.csv"], "folder/", None):
        with pytest.raises(SettingError):
            context.set_filename(name)  # type: ignore[arg-type]  # what somebody may give
    assert context.get_filename() == "t0.csv"


def test_a_path_is_a_name_too(context: TuningContext) -> None:
    context.set_filename(Path("t.csv"), insert_device_ordinal=True)  # type: ignore[arg-type]  # os.PathLike works
    assert context.get_filename() == "t0.csv"


@given(st.lists(st.tuples(st.sampled_from(["", "a.csv", "b.csv", "c%d.csv"]), st.booleans()), min_size=1, max_size=8))
def test_the_last_call_counts_whatever_came_before(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, bool]]
) -> None:
    backend = ScriptedBackend({FIRST: 1.0, FAST: 0.5})
    context = TuningContext(environ={}, directory=tmp_path_factory.mktemp("names"), backends={"0": backend})
    for name, is_inserted in calls:
        context.set_filename(name, insert_device_ordinal=is_inserted)
    name, is_inserted = calls[-1]
    inserted = {"a.csv": "a0.csv", "b.csv": "b0.csv", "c%d.csv": "c0.csv"}
    assert context.get_filename() == (inserted.get(name, name) if is_inserted else name)


def test_names_of_two_threads_at_once_leave_the_ordinal_of_the_one_that_counts(make_context: MakeContext) -> None:
    context = make_context()

    def other_thread() -> None:
        if context.get_filename() == "a0.csv":
            thread = threading.Thread(target=context.set_filename, args=("b.csv", True))
            thread.start()
            thread.join(20)

    on_filename(context, other_thread)
    context.set_filename("a.csv", insert_device_ordinal=True)
    assert context.get_filename() == "b0.csv"
