"""With DETERMINISTIC, nothing runs whose sums may change their order while there is something else to run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.csv_text import parse_results
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.testing import ScriptedBackend, scripted_kernel

SPLIT, SLOW, FAIR, FAST = (scripted_kernel(number) for number in range(1, 5))
ON = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_DETERMINISTIC": "1"}
UNTUNED = ON | {"TP_TUNABLEOP_TUNING": "0"}
LATER = ON | {"TP_TUNABLEOP_MODE": "background"}
OFF = {"TP_TUNABLEOP_DETERMINISTIC": "1"}


@pytest.fixture
def backend() -> ScriptedBackend:
    """A device whose first choice splits its sums, as does the fastest; FAIR is neither."""
    made = ScriptedBackend({SPLIT: 1.0, SLOW: 2.0, FAIR: 0.8, FAST: 0.5}, library=3)
    made.unordered = {SPLIT, FAST}
    return made


def recorded(folder: Path) -> list[str]:
    return [entry.kernel for entry in parse_results((folder / "tunableop_results0.csv").read_bytes()).entries]


def test_the_first_kernel_that_keeps_its_order_is_what_winners_must_beat(
    make_context: Any, call: Any, backend: ScriptedBackend, problem: GemmProblem
) -> None:
    context = make_context(ON)
    call(context)
    call(context)
    assert backend.runs == [FAIR, FAIR]
    why = context.explain(*signature_of(problem))
    candidates = why["candidates"]
    assert isinstance(candidates, (list, tuple))
    assert [each["kernel"] for each in candidates] == [SLOW, FAIR]


def test_where_nothing_beats_it_it_is_recorded_itself(
    make_context: Any, call: Any, backend: ScriptedBackend, tmp_path: Path
) -> None:
    backend._scripts[FAIR] = 3.0
    call(make_context(ON))
    assert (backend.runs, recorded(tmp_path)) == ([SLOW], [SLOW])


@pytest.mark.parametrize("environ", [UNTUNED, OFF], ids=["untuned", "off"])
def test_it_runs_without_tuning_and_with_the_feature_off_too(
    make_context: Any, call: Any, backend: ScriptedBackend, environ: Mapping[str, str]
) -> None:
    context = make_context(environ)
    call(context)
    assert backend.runs == [SLOW]
    assert not backend.trials, "what is selected by time may be another one in the next process"
    backend.is_capture_live = True
    call(context)
    assert backend.runs == [SLOW, SLOW]


def test_in_the_background_it_runs_until_there_is_a_winner(
    later: Any, call: Any, backend: ScriptedBackend, tmp_path: Path
) -> None:
    context = later(LATER)
    call(context)
    assert backend.runs == [SLOW]
    assert context.drain(20.0)
    call(context)
    assert (backend.runs, recorded(tmp_path)) == ([SLOW, FAIR], [FAIR])


def test_a_recorded_winner_that_splits_its_sums_is_stale(
    make_context: Any, call: Any, backend: ScriptedBackend, tmp_path: Path
) -> None:
    call(make_context({"TP_TUNABLEOP_ENABLED": "1"}))
    assert recorded(tmp_path) == [FAST]
    context = make_context(UNTUNED)
    call(context)
    assert backend.runs == [FAST, SLOW]
    assert recorded(tmp_path) == [FAST]
    (rejection,) = context.get_rejections()
    assert (rejection.kernel, "DETERMINISTIC" in rejection.reason) == (FAST, True)
    call(make_context(ON))
    assert backend.runs == [FAST, SLOW, FAIR]
    assert recorded(tmp_path) == [FAIR]


def test_a_winner_that_fails_gives_way_to_a_kernel_that_keeps_its_order(
    make_context: Any, call: Any, backend: ScriptedBackend
) -> None:
    context = make_context(ON)
    call(context)
    backend.broken.add(FAIR)
    call(context)
    assert backend.runs == [FAIR, SLOW]


def test_where_every_kernel_splits_its_sums_the_first_choice_is_measured_once(
    make_context: Any, call: Any, backend: ScriptedBackend
) -> None:
    backend.unordered = {SPLIT, SLOW, FAIR, FAST}
    context = make_context(ON)
    for _ in range(3):
        call(context)
    assert backend.runs == [SPLIT] * 3
    assert len(backend.trials) == 1


class FixedBackend(ScriptedBackend):
    """Its products of no tunable family run on a kernel of their own."""

    fixed = SPLIT

    def is_tunable(self, problem: GemmProblem, families: str) -> bool:
        return False

    def fixed_dispatch(self, problem: GemmProblem) -> Any:
        return self._plan(problem, self.fixed)


@pytest.fixture
def fixed_backend(backend: ScriptedBackend) -> FixedBackend:
    made = FixedBackend(backend._scripts)
    made.unordered = {SPLIT, "Default"}
    return made


@pytest.mark.parametrize(("fixed", "runs"), [(SPLIT, SLOW), (FAIR, FAIR), ("Default", "Default")])
def test_products_of_no_family_split_no_sum_either_unless_it_is_the_classic_call(
    make_context: Any, call: Any, fixed_backend: FixedBackend, fixed: str, runs: str
) -> None:
    fixed_backend.fixed = fixed
    call(make_context(ON, on=fixed_backend), on=fixed_backend)
    assert fixed_backend.runs == [runs]
