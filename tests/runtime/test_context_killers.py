"""What took down a process of the offline tuner is neither measured nor replayed by any other process."""

from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.killers import Death, Killer, KillerLog, killers_name
from tensorplay.errors import ResultsFileWarning
from tensorplay.gemm import GemmProblem, Signature, signature_of
from tensorplay.runtime.known_killers import KnownKillers
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
ON = {"TP_TUNABLEOP_ENABLED": "1"}
SEARCHING = ON | {"TP_TUNABLEOP_CANDIDATES": "search", "TP_TUNABLEOP_MAX_SEARCH_SECONDS": "1"}


def log_of(folder: Path, name: str = "tunableop_results0.csv") -> KillerLog:
    return KillerLog(killers_name(str(folder / name)))


def record(folder: Path, signature: Signature, kernel: str) -> None:
    log_of(folder).record(Killer(*signature, kernel, Death.DIED))


def test_a_killer_takes_no_part_in_a_process_that_tunes(
    make_context: Any, call: Any, backend: ScriptedBackend, problem: GemmProblem, tmp_path: Path
) -> None:
    record(tmp_path, signature_of(problem), FAST)
    context = make_context()
    call(context)
    assert backend.runs == [FIRST]
    kernels = [each["kernel"] for each in context.explain(*signature_of(problem))["candidates"]]
    assert kernels == [FIRST, SLOW]


def test_a_search_does_not_come_across_it_either(
    make_context: Any, call: Any, problem: GemmProblem, tmp_path: Path
) -> None:
    record(tmp_path, signature_of(problem), FAST)
    walking = ScriptedBackend({FIRST: 1.0, SLOW: 0.9, FAST: 0.1}, neighbours={SLOW: [FAST]})
    call(make_context(SEARCHING, on=walking), on=walking)
    assert walking.runs == [SLOW]


def test_it_is_a_killer_for_its_signature_alone(
    make_context: Any, call: Any, backend: ScriptedBackend, problem: GemmProblem, tmp_path: Path
) -> None:
    op, params = signature_of(problem)
    record(tmp_path, Signature(op, params.replace("_m4_", "_m5_")), FAST)
    call(make_context())
    assert backend.runs == [FAST]


def test_what_became_one_after_it_had_won_is_stale(
    make_context: Any, call: Any, backend: ScriptedBackend, problem: GemmProblem, tmp_path: Path
) -> None:
    call(make_context())
    record(tmp_path, signature_of(problem), FAST)
    context = make_context()
    call(context)
    assert backend.runs == [FAST, FIRST]
    (rejection,) = context.get_rejections()
    assert (rejection.kernel, rejection.healed) == (FAST, FIRST)


def test_what_an_offline_tuner_finds_meanwhile_is_known_at_the_next_measurement(
    make_context: Any, call: Any, backend: ScriptedBackend, problem: GemmProblem, tmp_path: Path
) -> None:
    context = make_context()
    call(context)
    record(tmp_path, signature_of(problem), FAST)
    assert context.forget(*signature_of(problem))
    call(context)
    assert backend.runs == [FAST, FIRST]


def test_it_is_looked_for_beside_the_file_that_winners_go_to(
    make_context: Any, call: Any, backend: ScriptedBackend, problem: GemmProblem, tmp_path: Path
) -> None:
    log_of(tmp_path, "mine0.csv").record(Killer(*signature_of(problem), FAST, Death.HUNG))
    call(make_context(ON | {"TP_TUNABLEOP_FILENAME": "mine%d.csv"}))
    assert backend.runs == [FIRST]


def test_a_hit_and_a_second_look_up_open_no_file(
    make_context: Any, call: Any, problem: GemmProblem, backend: ScriptedBackend, tmp_path: Path
) -> None:
    record(tmp_path, signature_of(problem), SLOW)
    context = make_context(ON | {"TP_TUNABLEOP_TUNING": "0"})
    context.override(*signature_of(problem), FAST)
    call(context)
    log_of(tmp_path).record(Killer(*signature_of(problem), FAST, Death.DIED))
    call(context)
    assert backend.runs == [FAST, FAST], "the file is asked for again only by who measures"


def test_a_file_that_cannot_be_read_is_warned_of_and_names_nothing(tmp_path: Path, problem: GemmProblem) -> None:
    results = str(tmp_path / "results.csv")
    Path(killers_name(results)).mkdir()
    known = KnownKillers()
    with pytest.warns(ResultsFileWarning, match="killers"):
        assert known.of(results, signature_of(problem)) == frozenset()
    assert known.of(results, signature_of(problem)) == frozenset()


def test_a_file_is_read_again_when_it_was_replaced_and_when_it_is_gone(tmp_path: Path, problem: GemmProblem) -> None:
    results, signature = str(tmp_path / "results.csv"), signature_of(problem)
    known, log = KnownKillers(), log_of(tmp_path, "results.csv")
    assert known.of(results, signature) == frozenset()
    log.record(Killer(*signature, FAST, Death.DIED))
    assert known.look_again(results) == {signature: frozenset({FAST})}
    assert known.of(results, signature) == frozenset({FAST})
    Path(log.path).unlink()
    assert known.look_again(results) == {}
