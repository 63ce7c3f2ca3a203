import pytest

from tensorplay.errors import MeasurementError
from tensorplay.measure import lowest_mean, select_in_process
from tensorplay.testing.scripted_timer import ScriptedTimer


def test_in_process_selection_runs_each_once_untimed_and_three_times_timed() -> None:
    timer = ScriptedTimer({"a": 2.0, "b": 1.0, "c": 3.0})
    assert select_in_process("abc", timer) == "b"
    assert timer.launches == dict.fromkeys("abc", 4)
    assert [timer.samples_of(name) for name in "abc"] == [3, 3, 3]


def test_the_mean_decides() -> None:
    assert select_in_process("ab", ScriptedTimer({"a": [0.0, 1.0, 1.0, 9.0], "b": 3.0})) == "b"


def test_a_single_choice_is_not_run() -> None:
    timer = ScriptedTimer({"a": 1.0})
    assert select_in_process("a", timer) == "a"
    assert timer.launches == {"a": 0}


@pytest.mark.parametrize("choose", [select_in_process, lowest_mean])
def test_between_equals_the_earlier_is_taken(choose: object) -> None:
    assert callable(choose)
    assert choose("ab", ScriptedTimer({"a": 1.0, "b": 1.0})) == "a"


@pytest.mark.parametrize("choose", [select_in_process, lowest_mean])
def test_what_cannot_be_launched_is_passed_over(choose: object) -> None:
    assert callable(choose)
    timer = ScriptedTimer({"a": 1.0, "b": 2.0, "c": 3.0}, fails_at={"a": 1, "b": 2})
    assert choose("abc", timer) == "c"


@pytest.mark.parametrize("choose", [select_in_process, lowest_mean])
def test_when_none_can_be_launched_the_error_says_why(choose: object) -> None:
    assert callable(choose)
    timer = ScriptedTimer({"a": 1.0, "b": 2.0}, fails_at={"a": 1, "b": 2})
    with pytest.raises(MeasurementError, match=r"none of 2 .*launch 1 of a.*launch 2 of b"):
        choose("ab", timer)


@pytest.mark.parametrize("choose", [select_in_process, lowest_mean])
def test_no_candidates_are_an_error(choose: object) -> None:
    assert callable(choose)
    with pytest.raises(ValueError, match="no candidates"):
        choose("", ScriptedTimer({}))


def test_the_naive_chooser_takes_a_candidate_that_is_fast_in_its_first_sample_only() -> None:
    timer = ScriptedTimer({"honest": 1.0, "flatterer": [0.5, 0.5, 2.0]})
    assert lowest_mean(["honest", "flatterer"], timer) == "flatterer"
    assert timer.samples_of("flatterer") == 1


def test_more_samples_are_averaged() -> None:
    timer = ScriptedTimer({"honest": 1.0, "flatterer": [0.5, 0.5, 2.0]})
    assert lowest_mean(["honest", "flatterer"], timer, 3) == "honest"


def test_no_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        lowest_mean("a", ScriptedTimer({"a": 1.0}), 0)
