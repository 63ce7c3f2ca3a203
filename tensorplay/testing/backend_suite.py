"""The rules of `tensorplay.backends.base`, as tests that every backend passes.

Subclass it under a name that pytest collects, and say what to test::

    class TestMyBackend(BackendSuite):
        construction = "from mine import MyBackend; MyBackend()"

        def backend(self):
            return MyBackend()

        def problems(self):
            return [GemmProblem(dtype=dtype_of_word("Float32"), m=33, n=17, k=65)]
"""

# ruff: noqa: D102 - the name of a test is the sentence that it proves

import gc
import subprocess
import sys
import tracemalloc
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar

from numpy.typing import NDArray

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.database.record import Entry, check_entry, check_validator
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.measure.numerics import Agreement, agree
from tensorplay.measure.tolerance import problem_tolerance

__all__ = ["BackendSuite"]

_BREADTHS = ("heuristic", "wide", "search")
_THREADS = 4
# What a closed trial may leave behind: caches of small objects, never an operand.
_SLACK_BYTES = 256 << 10


class BackendSuite(ABC):
    """Conformance tests of one backend; each opens what it needs and depends on no other.

    Attributes
    ----------
    construction : str
        Statements that import and make the backend, run in a fresh process.
    heavy : frozenset of str
        Modules that these must not import.
    """

    construction: ClassVar[str]
    heavy: ClassVar[frozenset[str]] = frozenset({"torch", "cupy", "jax", "scipy", "cuda", "nvmath", "ml_dtypes"})

    @abstractmethod
    def backend(self) -> Backend:
        """Return the backend under test."""

    @abstractmethod
    def problems(self) -> Sequence[GemmProblem]:
        """Return small tunable problems, one of each kind that the backend treats differently."""

    def untunable_problems(self) -> Sequence[GemmProblem]:
        """Return valid problems of no tunable family: they have a first choice too."""
        return ()

    def memory_bytes(self) -> int:
        """Return the memory in use where trials keep their operands; by default what Python and NumPy allocated."""
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    def test_making_it_imports_nothing_heavy(self) -> None:
        code = f"import sys; {self.construction}; print(*sys.modules)"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the subclass's code
        _check(done.returncode == 0, f"the construction fails: {done.stderr}")
        imported = self.heavy & set(done.stdout.split())
        _check(not imported, f"the construction imports {sorted(imported)}")

    def test_validators_are_facts_that_a_file_can_hold(self) -> None:
        backend = self.backend()
        validators = backend.validators(backend.current_device())
        names = [check_validator(validator).name for validator in validators]
        _check(len(set(names)) == len(names) > 0, f"there are no validators, or one is named twice: {names}")
        _check(not [name for name in names if name.startswith("TP_TUNABLEOP")], "the runtime adds its own validators")
        again = self.backend().validators(backend.current_device())
        _check(validators == again, f"validators changed from {validators} to {again}")

    def test_the_plan_family_is_part_of_all(self) -> None:
        for problem in self.problems():
            _check(self.backend().is_tunable(problem, "all"), f"{_text(problem)} is in no family")
        for problem in self.untunable_problems():
            families = [family for family in ("plan", "all") if self.backend().is_tunable(problem, family)]
            _check(not families, f"{_text(problem)} is in {families}")

    def test_every_valid_problem_has_a_first_choice_that_rebuilds(self) -> None:
        backend = self.backend()
        for problem in (*self.problems(), *self.untunable_problems()):
            first = backend.first_choice(problem)
            _check(first.problem == problem, f"the first choice of {_text(problem)} is for {_text(first.problem)}")
            again = backend.rebuild(problem, first.kernel)
            _check(again.kernel == first.kernel, f"{first.kernel} is rebuilt as {again.kernel}")

    def test_the_library_chooses_its_first_choice_first(self) -> None:
        backend = self.backend()
        for problem in self.problems():
            kernels = [plan.kernel for plan in backend.library_choices(problem)]
            _check(kernels[:1] == [backend.first_choice(problem).kernel], f"the library's choices are {kernels}")
            _check(len(set(kernels)) == len(kernels), f"the library's choices repeat: {kernels}")

    def test_candidates_differ_and_a_file_can_hold_them(self) -> None:
        for problem, plans in self._offered(CandidateQuery(breadth="search")):
            kernels = [plan.kernel for plan in plans]
            _check(len(set(kernels)) == len(kernels), f"candidates of {_text(problem)} repeat: {kernels}")
            for plan in plans:
                check_entry(Entry(*signature_of(problem), plan.kernel, 1.0))
                _check(plan.problem == problem, f"{plan.kernel} is for {_text(plan.problem)}, not {_text(problem)}")

    def test_a_wider_breadth_offers_all_of_a_narrower_one(self) -> None:
        for problem in self.problems():
            offered = [self._kernels(problem, CandidateQuery(breadth=breadth)) for breadth in _BREADTHS]
            for narrower, wider in pairwise(offered):
                _check(narrower <= wider, f"{_text(problem)}: only the narrower breadth has {narrower - wider}")

    def test_candidates_come_from_the_sources_that_take_part(self) -> None:
        backend = self.backend()
        _check(len(backend.sources) > 0, "there are no sources")
        query = CandidateQuery(breadth="search")
        for problem in self.problems():
            everything = self._kernels(problem, query)
            by_source = [
                self._kernels(problem, replace(query, sources=frozenset({source}))) for source in backend.sources
            ]
            together = set().union(*by_source)
            _check(everything <= together, f"of no source: {everything - together}")
            _check(sum(map(len, by_source)) == len(together), f"of several sources: {by_source}")
            nothing = self._kernels(problem, replace(query, sources=frozenset()))
            _check(not nothing, f"without any source there are {nothing}")

    def test_candidates_stay_below_the_ceiling_of_scratch_memory(self) -> None:
        for ceiling in (0, 1 << 12):
            for problem, plans in self._offered(CandidateQuery(workspace_bytes=ceiling)):
                above = [plan.kernel for plan in plans if plan.workspace_bytes > ceiling]
                _check(not above, f"{_text(problem)}: more than {ceiling} bytes are taken by {above}")

    def test_every_plan_computes_the_whole_product(self) -> None:
        for problem, plans in self._offered(CandidateQuery(breadth="search")):
            with self.backend().open_trial(problem, rotating_bytes=0) as trial:
                for plan in (self.backend().first_choice(problem), *plans):
                    found = _compared(trial, plan)
                    _check(found.ok, f"{plan.kernel} of {_text(problem)}: {found.reason}")

    def test_a_trial_finds_out_a_plan_that_computes_nothing(self) -> None:
        for problem in self.problems():
            idle = Plan(problem, "idle", lambda _left, _right, out, *_further: out)
            with self.backend().open_trial(problem, rotating_bytes=0) as trial:
                is_close = trial.closeness(self.backend().first_choice(problem), atol=0.0, rtol=0.01)
                passes = _compared(trial, idle).ok or (is_close and is_close(idle))
                _check(not passes, f"a plan of {_text(problem)} that computes nothing passes")

    def test_rebuilding_a_plan_gives_the_same_bits(self) -> None:
        for problem, plans in self._offered(CandidateQuery(breadth="search", deterministic=True)):
            with self.backend().open_trial(problem, rotating_bytes=0) as trial:
                for plan in (self.backend().first_choice(problem), *plans):
                    rebuilt = self.backend().rebuild(problem, plan.kernel)
                    _check(rebuilt.problem == problem, f"{plan.kernel} is rebuilt for {_text(rebuilt.problem)}")
                    one, other = trial.output(plan), trial.output(rebuilt)
                    _check(_same_bits(one, other), f"{plan.kernel} of {_text(problem)} computes other bits")

    def test_deterministic_candidates_repeat_their_bits(self) -> None:
        for problem, plans in self._offered(CandidateQuery(deterministic=True)):
            with self.backend().open_trial(problem, rotating_bytes=0) as trial:
                for plan in plans:
                    first = trial.output(plan)
                    repeated = plan.is_deterministic and all(_same_bits(first, trial.output(plan)) for _ in range(3))
                    _check(repeated, f"{plan.kernel} of {_text(problem)} changes from run to run")

    def test_a_plan_is_immutable(self) -> None:
        plan = self.backend().first_choice(self.problems()[0])
        try:
            plan.kernel = "Default"  # type: ignore[misc]  # that it cannot be set is what is tested
        except FrozenInstanceError:
            return
        raise AssertionError("a plan's kernel can be set")

    def test_a_plan_runs_in_several_threads_at_once(self) -> None:
        for problem, plans in self._offered(CandidateQuery(deterministic=True)):
            for plan in (self.backend().first_choice(problem), *plans):
                with ThreadPoolExecutor(_THREADS) as pool:
                    outputs = list(pool.map(self._output, [plan] * 2 * _THREADS))
                same = all(_same_bits(outputs[0], output) for output in outputs)
                _check(same, f"{plan.kernel} of {_text(problem)} computes something else beside itself")

    def test_an_unknown_kernel_is_refused_with_a_reason(self) -> None:
        problem = self.problems()[0]
        for kernel in ("host_nobody", "lt_id1_tile1_stages1_splitk1_red0_swizzle0_custom0_inner65535_cluster1", "x"):
            try:
                self.backend().rebuild(problem, kernel)
            except KernelUnavailableError as error:
                _check(str(error) != "", f"{kernel} is refused without a reason")
            else:
                raise AssertionError(f"{kernel} is rebuilt")

    def test_a_trial_times_plans_in_the_places_asked_for(self) -> None:
        for problem, plans in self._offered(CandidateQuery(breadth="heuristic")):
            first = self.backend().first_choice(problem)
            order = [first, *plans[:2], first]
            with self.backend().open_trial(problem, rotating_bytes=1 << 16) as trial:
                for plan in order:
                    trial.timer.warm_up(plan)
                times = [trial.timer.screen(first, 3), *trial.timer.sample(order)]
            _check(len(times) == 1 + len(order), f"{len(order)} places gave {len(times) - 1} samples")
            _check(all(isfinite(time) and time > 0 for time in times), f"{times} are no milliseconds")

    def test_a_plan_that_fails_is_a_launch_error(self) -> None:
        def fail(*_: object) -> object:
            raise RuntimeError("by intention")

        problem = self.problems()[0]
        broken = Plan(problem, self.backend().first_choice(problem).kernel, fail)
        with self.backend().open_trial(problem, rotating_bytes=0) as trial:
            for launch in (
                lambda: trial.output(broken),
                lambda: trial.timer.warm_up(broken),
                lambda: trial.timer.screen(broken, 2),
                lambda: trial.timer.sample([broken]),
            ):
                try:
                    launch()
                except LaunchError as error:
                    _check("by intention" in str(error), f"the library's explanation is lost: {error}")
                else:
                    raise AssertionError("a plan that fails is taken for one that runs")
            trial.timer.warm_up(self.backend().first_choice(problem))

    def test_a_closed_trial_has_given_back_its_memory(self) -> None:
        tracemalloc.start()
        try:
            for problem in self.problems():
                self._use_trial(problem)
                before = self.memory_bytes()
                self._use_trial(problem)
                kept = self.memory_bytes() - before
                _check(kept < _SLACK_BYTES, f"a trial of {_text(problem)} keeps {kept} bytes")
        finally:
            tracemalloc.stop()

    def test_asking_for_a_capture_takes_nothing(self) -> None:
        tracemalloc.start()
        try:
            backend, before = self.backend(), self.memory_bytes()
            answers = {backend.is_capturing(None) for _ in range(100)}
            taken = self.memory_bytes() - before
        finally:
            tracemalloc.stop()
        _check(answers == {False}, f"no capture is live, the answers are {answers}")
        _check(taken < _SLACK_BYTES, f"asking took {taken} bytes")

    def _offered(self, query: CandidateQuery) -> Iterator[tuple[GemmProblem, list[Plan]]]:
        for problem in self.problems():
            yield problem, list(self.backend().candidates(problem, query))

    def _kernels(self, problem: GemmProblem, query: CandidateQuery) -> set[str]:
        kernels = {plan.kernel for plan in self.backend().candidates(problem, query)}
        first = self.backend().first_choice(problem).kernel
        _check(first not in kernels, f"the first choice {first} is among the candidates of {_text(problem)}")
        return kernels

    def _output(self, plan: Plan) -> NDArray[Any]:
        with self.backend().open_trial(plan.problem, rotating_bytes=0) as trial:
            return trial.output(plan)

    def _use_trial(self, problem: GemmProblem) -> None:
        with self.backend().open_trial(problem, rotating_bytes=1 << 24) as trial:
            trial.output(first := self.backend().first_choice(problem))
            trial.reference()
            trial.timer.sample([first])


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _compared(trial: Trial, plan: Plan) -> Agreement:
    exact, problem, allowed = trial.reference, plan.problem, problem_tolerance(plan.problem)
    return agree(trial.output(plan), exact(), exact, dtype=problem.dtype, k=problem.k, tolerance=allowed)


def _same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _text(problem: GemmProblem) -> str:
    return " ".join(signature_of(problem))
