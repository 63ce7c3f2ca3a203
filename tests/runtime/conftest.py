"""Contexts made by hand on a scripted device, in a folder of their own."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.base import Trial
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
ON = {"TP_TUNABLEOP_ENABLED": "1"}
LATER = ON | {"TP_TUNABLEOP_MODE": "background"}
LONG_S = 20.0
FLOAT32 = dtype_of_name("float32")

MakeContext = Callable[..., TuningContext]
Call = Callable[..., NDArray[Any]]


@pytest.fixture
def backend() -> ScriptedBackend:
    """A device whose first choice takes 1 ms, and which has one kernel of half that and one of twice."""
    return ScriptedBackend({FIRST: 1.0, FAST: 0.5, SLOW: 2.0})


@pytest.fixture
def make_context(tmp_path: Path, backend: ScriptedBackend) -> MakeContext:
    """Makes a context as a fresh process would have it: same folder, same device, its own memory."""

    def make(
        environ: Mapping[str, str] = ON,
        *,
        on: ScriptedBackend | None = None,
        directory: Path = tmp_path,
        **options: Any,
    ) -> TuningContext:
        chosen = on or backend
        return TuningContext(environ=environ, directory=tmp_path, backends={chosen.current_device(): chosen}, **options)

    return make


@pytest.fixture
def context(make_context: MakeContext) -> TuningContext:
    return make_context()


@pytest.fixture
def problem() -> GemmProblem:
    assert FLOAT32 is not None
    return GemmProblem(dtype=FLOAT32, m=4, n=3, k=5, device="0")


@pytest.fixture
def call(problem: GemmProblem, backend: ScriptedBackend) -> Call:
    """Runs the problem once as an operation would, on its backend, and checks the values."""

    def run(context: TuningContext, *, on: ScriptedBackend | None = None) -> NDArray[Any]:
        rng = np.random.default_rng(7)
        left = rng.standard_normal((problem.m, problem.k)).astype(np.float32)
        right = rng.standard_normal((problem.k, problem.n)).astype(np.float32)
        resolved = context.resolve(problem, on or backend)
        try:
            product: NDArray[Any] = resolved.run(left, right, None)
        except Exception as error:  # noqa: BLE001 - as the operations do
            product = context.recover(resolved, error, left, right, None)
        np.testing.assert_allclose(product, left @ right, rtol=1e-5, atol=1e-5)
        return product

    return run


class PatientBackend(ScriptedBackend):
    """A scripted device that is idle when the test says so, and whose trials begin when the test says so."""

    def __init__(self, scripts: Mapping[str, Any] | None = None) -> None:
        super().__init__(scripts or {FIRST: 1.0, FAST: 0.5, SLOW: 2.0})
        self.idle = True
        self.noted: list[tuple[str, int | None]] = []
        self.threads: list[threading.Thread] = []
        self.is_open = threading.Event()
        self.is_open.set()
        self.began = threading.Semaphore(0)
        self.in_trial: Callable[[], None] = lambda: None
        self.beside = 0

    def is_idle(self, device: str) -> bool:
        return self.idle

    def note_call(self, device: str, stream: int | None) -> None:
        self.noted.append((device, stream))

    @contextmanager
    def beside_captures(self) -> Iterator[None]:
        self.beside += 1
        yield
        self.beside -= 1

    @contextmanager
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> Iterator[Trial]:
        self.threads.append(threading.current_thread())
        assert self.beside == (threading.current_thread() is not threading.main_thread())
        self.began.release()
        assert self.is_open.wait(LONG_S)
        with super().open_trial(problem, rotating_bytes=rotating_bytes) as trial:
            self.in_trial()
            yield trial


@pytest.fixture
def make_patient() -> Iterator[Callable[..., PatientBackend]]:
    """Makes devices that say when they are idle, and whose trials are let go at the end."""
    made: list[PatientBackend] = []

    def make(scripts: Mapping[str, Any] | None = None) -> PatientBackend:
        made.append(PatientBackend(scripts))
        return made[-1]

    yield make
    for each in made:
        each.is_open.set()


@pytest.fixture
def later(make_context: MakeContext) -> Iterator[MakeContext]:
    """Makes contexts that measure in the background, and ends them."""
    made: list[TuningContext] = []

    def make(environ: Mapping[str, str] = LATER, **options: Any) -> TuningContext:
        made.append(make_context(environ, **options))
        return made[-1]

    yield make
    for context in made:
        context.close()
