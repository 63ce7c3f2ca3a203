"""The comparison itself: every contestant on each shape, side by side, with the roofline measured in the same run."""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness.cuda_shapes import CudaOperands

from selection.autotuners import cublas_autotune, nvmath_autotune
from selection.comparing import estimated_us
from selection.contestant import Ready, Unavailable, relative_error, tolerance_of
from selection.frameworks import cupy, torch_mm
from selection.jax_chain import jax
from selection.jax_chain import prepare as prepare_jax
from selection.ours import BREADTHS, Tuner, first_choice, naive
from selection.recorder import Recorder, behind_delay
from selection.roofline import Ceilings, measured_ceilings, roofline
from selection.rounds import Times, gain, repeats_to_fill, summary_of, timed_by_turns
from selection.setting import Setting, allowing_tf32, operand_sets, shapes_by_name
from selection.shapes import SelectionShape

if TYPE_CHECKING:
    from harness.cuda_timing import Replay

__all__ = ["CONTESTANTS", "items", "measured"]

Maker = Callable[[SelectionShape, Sequence[CudaOperands]], Ready]

_FIXED: dict[str, Maker] = {
    "torch": torch_mm,
    "cupy": cupy,
    "jax": jax,
    "nvmath": nvmath_autotune,
    "cublas": cublas_autotune,
    "first": first_choice,
    "naive": naive,
}
CONTESTANTS = (*_FIXED, *BREADTHS)
"""In the order in which they are made ready; `first` is the library's first choice."""

_DELAYED = "eager calls behind a delay"


def items(setting: Setting) -> list[str]:
    """Return the names of all shapes."""
    return list(shapes_by_name(setting.shapes))


def measured(setting: Setting, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row a shape."""
    if "jax" not in setting.without:
        _prepare_jax()
    recorder, rng = Recorder(), random.Random(0)  # noqa: S311 - an order, not a secret
    shapes = shapes_by_name(setting.shapes)
    makers = _FIXED | {name: Tuner(setting.work, name, setting.search_seconds).ready for name in BREADTHS}
    makers = {name: maker for name, maker in makers.items() if name not in setting.without}
    ceilings = measured_ceilings([shapes[name].dtype for name in wanted], quick=setting.quick)
    for name in wanted:
        with allowing_tf32(shapes[name]):
            yield _Comparison(shapes[name], recorder, rng).row(makers, setting.rounds, ceilings)


class _Comparison:
    """One shape's contestants as they are made ready, and why some are not."""

    def __init__(self, shape: SelectionShape, recorder: Recorder, rng: random.Random) -> None:
        self._shape, self._recorder, self._rng = shape, recorder, rng
        self._sets = operand_sets(shape)
        self._repeats = 0
        self._ready: dict[str, Ready] = {}
        self._methods: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._replays: dict[str, Replay] = {}
        self._clocks: dict[str, Callable[[], float]] = {}

    def row(self, makers: dict[str, Maker], rounds: int, ceilings: Ceilings) -> dict[str, Any]:
        """Return what was measured of all, plain values."""
        for name, maker in makers.items():
            self._enter(name, maker)
        try:
            times = timed_by_turns(self._replays, self._clocks, rounds=rounds, rng=self._rng)
        finally:
            self._replays.clear()
            for ready in self._ready.values():
                ready.close()
        limit = roofline(self._shape, ceilings)
        return {
            "item": str(self._shape),
            **self._shape._asdict(),
            "sets": len(self._sets),
            "roofline_us": limit.us,
            "bound": limit.bound,
            "copy_tb_s": ceilings.copy_bytes_per_s / 1e12,
            "peak_tflop_s": ceilings.flops_per_s[self._shape.dtype] / 1e12,
            "sm_mhz": ceilings.sm_mhz,
            "contestants": {name: self._facts(name, times) for name in makers},
        }

    def _enter(self, name: str, maker: Maker) -> None:
        """Make a contestant ready and capture it; whatever it raises is why it takes no part, and the others go on."""
        import torch

        try:
            ready = maker(self._shape, self._sets)
            self._ready[name] = ready
            if ready.clock is None:
                self._recorder.warm_up(ready.calls)
            self._check(ready)
            self._methods[name] = self._capture(name, ready)
        except Unavailable as reason:
            self._reasons[name] = str(reason)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding about this contestant
            self._reasons[name] = f"{type(error).__name__}: {error}"[:300]
            sys.stderr.write(f"{self._shape}: {name}: {self._reasons[name]}\n")
            # A broken context breaks everybody else: then this raises, and the run ends.
            torch.cuda.synchronize()

    def _check(self, ready: Ready) -> None:
        found = self._sets[0].out if ready.result is None else ready.result()
        error = relative_error(found, self._sets[0])
        # Whoever writes nothing next must not pass by what is left there.
        self._sets[0].out.zero_()
        if not error <= tolerance_of(self._shape.dtype):
            raise RuntimeError(f"wrong result: off by {error:.2g} of the whole")

    def _capture(self, name: str, ready: Ready) -> str:
        """Return how the contestant is timed."""
        if ready.clock is not None:
            self._clocks[name] = ready.clock
            return ready.method
        if not self._repeats:
            us = estimated_us(self._recorder, ready.calls, self._rng)
            self._repeats = repeats_to_fill(us, len(ready.calls))
        try:
            self._replays[name] = self._recorder.captured(ready.calls, self._repeats)
        except Exception as error:  # noqa: BLE001 - it is another framework's word for what it does not do
            sys.stderr.write(f"{self._shape}: {name} cannot be captured: {error}\n")
            self._clocks[name] = behind_delay(ready.calls)
            return _DELAYED
        return ready.method

    def _facts(self, name: str, times: Times) -> dict[str, Any]:
        if name in self._reasons:
            return {"reason": self._reasons[name]}
        ready = self._ready[name]
        others = times.keys() - {name} if name in BREADTHS else times.keys() & {"torch", "first"}
        return {
            **summary_of(times[name])._asdict(),
            **{f"over_{other}": gain(times, name, other) for other in sorted(others)},
            "method": self._methods[name],
            "detail": ready.detail,
            "seconds": ready.seconds,
            **ready.facts,
        }


def _prepare_jax() -> None:
    try:
        prepare_jax()
    except (ImportError, RuntimeError, AttributeError) as error:
        # Told again, in each row, by the contestant itself.
        sys.stderr.write(f"JAX does not start: {error}\n")
