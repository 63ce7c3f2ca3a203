from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.bench_process import BenchMode
from tensorplay.cli.bench_report import BenchReport
from tensorplay.cli.bench_shape import parse_shape
from tensorplay.cli.bench_summary import Outcome, ShapeSummary
from tensorplay.runtime.resolution import Reason

TIMES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=9)


def reply(
    *,
    first: float = 1.0,
    steady: list[float] | None = None,
    paired: list[float] | None = None,
    kernel: str | None = "host_numpy",
    fault: str = "",
    **stats: int,
) -> Mapping[str, Any]:
    return {
        "first_call_ms": first,
        "steady_ms": steady or [2.0],
        "paired": paired or [],
        "fault": fault,
        "stats": {reason.value: 0 for reason in Reason} | stats,
        "signature": ["GemmTunableOp_Float32", "taN_m4_n8_k4_bias0_devcpu"],
        "kernel": kernel,
        "time_ms": 0.1,
        "verdict": "won",
        "not_measured": None,
    }


def summary(
    default: Mapping[str, Any] | None = None,
    tune: Mapping[str, Any] | None = None,
    replay: Mapping[str, Any] | None = None,
) -> ShapeSummary:
    made = ShapeSummary(parse_shape("float32:4x8x4"))
    made.add(BenchMode.DEFAULT, default or reply(kernel=None))
    made.add(BenchMode.TUNE, tune or reply(measured=1, replayed=9))
    made.add(BenchMode.REPLAY, replay or reply(replayed=9, paired=[1.5, 1.6, 1.7]))
    return made


def report(*summaries: ShapeSummary) -> BenchReport:
    return BenchReport(
        summaries=summaries,
        device="cpu",
        results_name="/some where/tunableop_results.csv",
        results_file="/some where/tunableop_resultscpu.csv",
        repeats=1,
        iterations=3,
    )


def test_a_shape_that_was_tuned_and_replayed_has_its_gain_from_one_process() -> None:
    good = summary(default=reply(steady=[4.0], kernel=None), replay=reply(replayed=9, steady=[2.0], paired=[1.5, 1.6]))
    assert good.outcome is Outcome.REPLAYED
    assert good.gain_paired is not None
    assert good.gain_paired.median == 1.55
    assert good.gain_between_processes == 2.0
    assert not report(good).has_failed
    assert "replay measured nothing: 1 of 1 shape replayed" in list(report(good).closing())


def test_wrong_values_in_any_process_make_the_shape_fail_and_name_it() -> None:
    for mode in BenchMode:
        bad = summary()
        bad.add(mode, reply(fault="1 of 32 elements are wrong", replayed=1))
        assert bad.outcome is Outcome.FAILED
        assert report(summary(), bad).has_failed
        said = f"float32:4x8x4 failed: wrong values in the {mode} process: 1 of 32 elements are wrong"
        assert said in list(report(summary(), bad).closing())


def test_a_replay_that_measures_or_does_not_replay_is_a_failure() -> None:
    assert summary(replay=reply(replayed=1, measured=1)).outcome is Outcome.FAILED
    assert summary(replay=reply(first_choice=9)).outcome is Outcome.FAILED
    measured = summary(replay=reply(replayed=1, measured=1))
    assert "replay measured 1 signature: 0 of 1 shape replayed" in list(report(measured).closing())


def test_a_shape_of_no_tuned_family_is_no_failure_and_its_reason_is_given() -> None:
    plain = summary(tune=reply(kernel=None, first_choice=9), replay=reply(kernel=None, first_choice=9))
    assert plain.outcome is Outcome.NOT_TUNED
    assert not report(plain).has_failed
    assert any("TP_TUNABLEOP_FAMILIES" in line for line in report(plain).closing())
    failed = summary(
        tune={**reply(kernel=None), "not_measured": "no memory"}, replay=reply(kernel=None, first_choice=9)
    )
    assert "float32:4x8x4 was not tuned: no memory" in list(report(failed).closing())


def test_a_shape_that_cannot_be_made_is_skipped() -> None:
    skipped = ShapeSummary(parse_shape("tf32:4x8x4"))
    skipped.add(BenchMode.DEFAULT, {"skipped": "NumPy has no tf32 arrays here"})
    assert skipped.outcome is Outcome.SKIPPED
    assert not report(skipped).has_failed
    assert "tf32:4x8x4 was skipped: NumPy has no tf32 arrays here" in list(report(skipped).closing())
    assert [row[:2] for row in report(skipped).rows()] == [["tf32:4x8x4", "skipped"]]
    assert list(report(skipped).closing())[-1] == "there is no winner to replay elsewhere"


def test_a_winner_that_was_there_before_is_called_kept() -> None:
    kept = summary(tune=reply(replayed=9))
    assert kept.tuning_ms is None
    assert ["  host_numpy", "tuning", "kept"] in [row[:3] for row in report(kept).rows()]


def test_the_next_steps_are_two_variables_quoted_for_a_shell() -> None:
    assert list(report(summary()).closing())[-2:] == [
        "  export TP_TUNABLEOP_ENABLED=1",
        "  export TP_TUNABLEOP_FILENAME='/some where/tunableop_results.csv'",
    ]


@given(st.lists(TIMES, min_size=1, max_size=4))
def test_the_median_lies_between_the_bounds_over_any_number_of_processes(processes: list[list[float]]) -> None:
    made = ShapeSummary(parse_shape("float32:4x8x4"))
    for steady in processes:
        made.add(BenchMode.DEFAULT, reply(steady=steady, first=steady[0], kernel=None))
    for found in (made.steady_ms(BenchMode.DEFAULT), made.first_call_ms(BenchMode.DEFAULT)):
        assert found is not None
        assert found.low <= found.median <= found.high
        assert min(map(min, processes)) <= found.low
        assert found.high <= max(map(max, processes))


def test_gains_that_vary_are_told_with_what_to_do() -> None:
    restless = summary(replay=reply(replayed=9, paired=[0.5, 1.0, 2.0, 3.0]))
    assert any("the machine is busy" in line for line in report(restless).closing())
    assert not any("the machine is busy" in line for line in report(summary()).closing())
