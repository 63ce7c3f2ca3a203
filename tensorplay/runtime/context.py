"""The tuning context: it holds the state of the tunable runtime, and turns a problem into what runs.

It composes and delegates: files are the archive's and the database's, times are the tuner's, rules are the
decision table's, and what the process has learned is the ledger's.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tensorplay.backends.base import Backend, Plan
from tensorplay.errors import OperandError, TensorPlayError
from tensorplay.gemm import DEFAULT, GemmProblem, Signature, signature_of
from tensorplay.interrupts import is_nested, is_of_a_handler
from tensorplay.runtime import listeners as events
from tensorplay.runtime.device_results import DeviceResults
from tensorplay.runtime.notice import logger
from tensorplay.runtime.plans import Plans, plan_count, without
from tensorplay.runtime.resolution import Action, Decision, EntryState, Facts, Reason, decide
from tensorplay.runtime.resolved import Resolved, stream_of, unless_capturing
from tensorplay.runtime.settings_table import setting_of
from tensorplay.runtime.steering import Steering
from tensorplay.runtime.tuner import Measurement
from tensorplay.typing import Clock

__all__ = ["TuningContext"]

# Plans kept ready by operand layout; a workload whose shapes never repeat starts over instead of growing.
LARGEST_PLAN_CACHE = 1 << 16


class TuningContext(Steering):
    """The state of the tunable runtime, with every operation of `tensorplay.tunable` as a method.

    A process has one, `get_tuning_context()`; tests make their own. Safe in any number of threads.

    Parameters
    ----------
    environ : mapping, optional
        Where settings are read from, once, here; the process's environment by default.
    directory : path, optional
        What relative file names are relative to; the working directory by default.
    backends : mapping of str to Backend, optional
        Backends by device, instead of the registry's.
    clock : callable, optional
        Seconds for `TOTAL_TUNING_SECONDS`.

    Attributes
    ----------
    enabled : bool
        The master switch, for the hot path to read. Set by `enable()` only.
    workspace_mib : int or None
        The ceiling of scratch memory in MiB, None for the default: only another one is part of a signature.
    plans : dict
        What operands resolved to, for `tensorplay.ops` to fill: whoever resolves stores into those it read before.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
        backends: Mapping[str, Backend] | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        super().__init__(
            os.environ if environ is None else environ,
            os.curdir if directory is None else directory,
            backends or {},
            clock,
        )
        self.plans: Plans = {}
        self.enabled = self._settings.enabled
        self.workspace_mib = self._changed_workspace()
        self._settings.on_change(self._setting_changed)

    def resolve(self, problem: GemmProblem, backend: Backend, stream: int | None = None) -> Resolved:
        """Return what runs `problem` now, by the decision table, and count the call; measures when the table says so.

        Raises nothing that tuning caused, `OperandError` where nothing can run these operands, and what a signal
        handler raises: where anything else fails, the first choice is returned.
        """
        try:
            return self._resolve(problem, backend, stream)
        except OperandError:
            raise
        except Exception as error:
            if is_of_a_handler(error):
                raise
            count = self._ledger.count_failure(error)
            # Not kept, since it may pass; and so it may come with each call, and is not logged each time.
            if not count & (count - 1):
                told = "the tuned choice for %s could not be found; the first choice runs (failure %d of its kind)"
                logger.exception(told, problem, count)
            return self._settle(self._first_choice(problem, backend), None, Reason.FIRST_CHOICE, cacheable=False)

    def _resolve(self, problem: GemmProblem, backend: Backend, stream: int | None) -> Resolved:
        if not backend.is_tunable(problem, self._settings.families):
            return self._settle(self._fixed_dispatch(problem, backend), None, Reason.FIRST_CHOICE)
        signature = signature_of(problem)
        if not self._is_ready(problem.device) and self._is_interrupted():
            return self._in_passing(problem, backend, signature)
        device = self._device(problem.device, backend)
        plan, state = None, EntryState.NONE
        if self._settings.enabled:
            device.ensure_loaded()
            plan, state = self._recorded(device, signature, problem, backend)
        decision = decide(
            Facts(
                enabled=self._settings.enabled,
                entry=state,
                capturing=backend.is_capturing(stream, problem.device),
                tuning=self._is_measurable(device, signature),
                background=self._settings.mode == "background",
                pinned=self._ledger.pinned(signature) is not None,
            )
        )
        if decision.pin:
            self._pin(signature)
        if decision.action is Action.WINNER and plan is not None:
            return self._settle(plan, signature, decision.reason, partial(self._first_choice, problem, backend))
        is_measured = decision.action in {Action.SELECT_IN_PROCESS, Action.MEASURE}
        is_noted = decision.queue or (decision.untuned and self._settings.record_untuned)
        if self._is_interrupted() if is_measured else is_noted and is_nested():
            return self._in_passing(problem, backend, signature)
        if decision.action is Action.SELECT_IN_PROCESS:
            return self._settle(self._select(signature, problem, backend), signature, decision.reason)
        if decision.action is Action.MEASURE:
            measurement = self._measure(device, signature, problem, backend)
            if not isinstance(measurement, Measurement):
                return self._resolve(problem, backend, stream)
            tally = self._ledger.counters.tally(signature, Reason.REPLAYED)
            first_choice = partial(self._first_choice, problem, backend)
            return Resolved(measurement.plan.run, tally, signature, measurement.plan, first_choice)
        return self._run_first_choice(decision, device, signature, problem, backend)

    def keep(self, plans: dict[Any, Resolved], key: object, resolved: Resolved) -> None:
        """Let later calls of the same operand layout run `resolved`; `plans` is what was read before resolving."""
        if not resolved.cacheable:
            return
        if len(plans) >= LARGEST_PLAN_CACHE:
            self._invalidate()
        plans[key] = resolved

    def fixed(self, run: Any) -> Resolved:
        """Return what runs a product that has no signature, and count the call; `run` is the library's own way."""
        tally = self._ledger.counters.tally(None, Reason.FIRST_CHOICE)
        tally.calls += 1
        return Resolved(run, tally)

    def recover(self, resolved: Resolved, error: Exception, *operands: object) -> Any:
        """Run the first choice for one call whose winner raised `error`, and treat the winner as stale.

        Raises what the first choice raises: then the operands are at fault, and the winner is not.
        """
        signature, plan = resolved.signature, resolved.plan
        if is_of_a_handler(error) or resolved.first_choice is None or signature is None or plan is None:
            raise error
        first = resolved.first_choice()
        if plan.kernel == first.kernel:
            raise error
        result = first.run(*operands)
        self._ledger.rejections.fail(signature, plan.kernel)
        self._ledger.reject(signature, plan.kernel, f"failed when it ran: {error}")
        self._ledger.counters.tally(signature, Reason.FALLBACK).calls += 1
        self.listeners.tell(events.FALLBACK, op=signature.op, params=signature.params, kernel=plan.kernel)
        self._invalidate()
        return result

    def _in_passing(self, problem: GemmProblem, backend: Backend, signature: Signature) -> Resolved:
        """Return the first choice for a call that must wait for nobody, and let a later one be decided as it should."""
        first = self._first_choice(problem, backend)
        return self._settle(first, signature, Reason.FIRST_CHOICE, cacheable=False)

    def _is_measurable(self, device: DeviceResults, signature: Signature) -> bool:
        """Return whether tuning is on for a signature; a pinned winner that does not run any more is not replaced."""
        is_closed = device.is_pinned(signature) or self._ledger.not_measurable(signature) is not None
        return self._settings.tuning and not is_closed

    def _pin(self, signature: Signature) -> None:
        self._ledger.pin(signature, "first used under a graph capture")
        self.background.remove(signature)
        self._renew(signature)

    def _changed_workspace(self) -> int | None:
        value = self._settings.workspace_mib
        return None if value == setting_of("workspace_mib").default else value

    def _setting_changed(self, name: str, old: object, new: object) -> None:
        self.enabled = self._settings.enabled
        self.workspace_mib = self._changed_workspace()
        self._ledger.try_again()
        if not self._is_deferring():
            self.background.clear()
        if name == "filename":
            with self._state_lock:
                self._redirect()
        self._invalidate()
        self.listeners.tell(events.SETTING, name=name, old=old, new=new)

    def _invalidate(self) -> None:
        self.plans = {}

    def _renew(self, signature: Signature) -> None:
        before = self.plans
        kept = without(before, signature)
        # In one step, for all threads; whoever resolved by what was true before keeps it in the dict that is gone.
        if len(kept) < plan_count(before):
            self.plans = kept

    def _forgotten(self, signature: Signature, kernel: str | None = None) -> None:
        self._ledger.forget(signature, kernel)

    def _settle(
        self,
        plan: Plan,
        signature: Signature | None,
        reason: Reason,
        first_choice: Callable[[], Plan] | None = None,
        *,
        cacheable: bool = True,
    ) -> Resolved:
        tally = self._ledger.counters.tally(signature, reason)
        tally.calls += 1
        return Resolved(plan.run, tally, signature, plan, first_choice, cacheable)

    def _recorded(
        self, device: DeviceResults, signature: Signature, problem: GemmProblem, backend: Backend
    ) -> tuple[Plan | None, EntryState]:
        """Return the recorded winner's plan, and what kind of entry there is; a stale one is reported."""
        entry = device.results.get(signature)
        if entry is None:
            return None, EntryState.NONE
        if entry.kernel == DEFAULT:
            return None, EntryState.DEFAULT
        if entry.kernel in self._ledger.rejections.failed(signature):
            return None, EntryState.STALE
        is_killer = entry.kernel in self._killers.of(device.path, signature)
        if is_killer and entry.kernel != self._first_choice(problem, backend).kernel:
            self._ledger.reject(signature, entry.kernel, "took down a process that measured it")
            return None, EntryState.STALE
        try:
            plan = backend.rebuild(problem, entry.kernel)
        except Exception as error:
            # A kernel id from a file must not break a GEMM, whatever it does.
            if is_of_a_handler(error):
                raise
            self._ledger.reject(signature, entry.kernel, str(error))
            return None, EntryState.STALE
        is_forbidden = self._settings.deterministic and not plan.is_deterministic
        if is_forbidden and plan.kernel != self._first_choice(problem, backend).kernel:
            reason = "its sums may change their order, and deterministic is on (TP_TUNABLEOP_DETERMINISTIC)"
            self._ledger.reject(signature, entry.kernel, reason)
            return None, EntryState.STALE
        return plan, EntryState.WINNER

    def _run_first_choice(
        self, decision: Decision, device: DeviceResults, signature: Signature, problem: GemmProblem, backend: Backend
    ) -> Resolved:
        is_refused = decision.queue and not self._queue(device, signature, problem, backend)
        if decision.untuned or (is_refused and not decision.reject):
            self._ledger.note_untuned(signature)
            if self._settings.record_untuned:
                self._log_untuned(signature, device.device)
        plan = self._first_choice(problem, backend)
        if is_refused or decision.settled or not (backend.captures and decision.until_captured):
            cacheable = not is_refused and (decision.settled or not backend.captures)
            return self._settle(plan, signature, decision.reason, cacheable=cacheable)
        return self._until_captured(plan, signature, problem, backend, decision)

    def _until_captured(
        self, plan: Plan, signature: Signature, problem: GemmProblem, backend: Backend, decision: Decision
    ) -> Resolved:
        """Return the first choice, to be run again without asking until a call comes under a capture."""
        tally = self._ledger.counters.tally(signature, decision.reason)
        tally.calls += 1

        def is_capturing(stream: int | None) -> bool:
            try:
                return backend.is_capturing(stream, problem.device)
            except TensorPlayError:
                # The long way says what is wrong with such a stream.
                return True

        def anew(*operands: Any) -> Any:
            # It was counted as what it was before.
            tally.calls -= 1
            resolved = self.resolve(problem, backend, stream_of(operands))
            try:
                # Of a plan itself, nothing asks whether it is captured once more.
                return (resolved.plan or resolved).run(*operands)
            except Exception as error:  # noqa: BLE001 - the first choice decides whose fault it was
                return self.recover(resolved, error, *operands)

        note = partial(backend.note_call, problem.device) if decision.queue else None
        return Resolved(unless_capturing(plan.run, is_capturing, anew, note), tally, signature, plan)
