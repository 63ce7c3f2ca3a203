import pytest

from tensorplay.testing import ManualClock, ScriptedSpace


def space(clock: ManualClock | None = None) -> ScriptedSpace:
    return ScriptedSpace(
        "k",
        {"a": (1, 2, 3), "b": (0, 5)},
        lambda values: None if values == {"a": 2, "b": 0} else float(values["a"] + values["b"]),
        clock=clock,
        build_ms=1.0,
        check_ms=10.0,
        overhead_ms=0.0,
    )


def test_its_kernels_are_those_that_run_and_the_best_is_the_fastest() -> None:
    made = space()
    assert set(made.times) == {"k_a1_b0", "k_a1_b5", "k_a2_b5", "k_a3_b0", "k_a3_b5"}
    assert made.best == "k_a1_b0"
    assert made.timer.screen("k_a3_b5", 2) == 8.0


def test_neighbours_differ_in_one_setting_by_turns_and_take_time() -> None:
    clock = ManualClock()
    made = space(clock)
    assert list(made.neighbours("k_a3_b5")) == ["k_a2_b5", "k_a3_b0", "k_a1_b5"]
    assert clock() == pytest.approx(0.003)
    lazy = made.neighbours("k_a3_b5")
    next(lazy)
    assert clock() == pytest.approx(0.004)


def test_checking_runs_the_kernel_and_finds_the_wrong_ones() -> None:
    clock = ManualClock()
    made = space(clock)
    made.wrong = {"k_a1_b5"}
    assert [made.is_right("k_a1_b0"), made.is_right("k_a1_b5")] == [True, False]
    assert made.checked == ["k_a1_b0", "k_a1_b5"]
    assert made.timer.launches["k_a1_b5"] == 1
    assert clock() == pytest.approx(0.020 + 0.001 + 0.006)


def test_what_does_not_run_cannot_be_recalled() -> None:
    assert space().recall("k_a1_b0") == "k_a1_b0"
    assert space().recall("k_a2_b0") is None
