"""A real server over a context on a scripted device, and a client of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorplay.gemm import GemmProblem, parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
OP = "GemmTunableOp_Float32"


@pytest.fixture
def backend() -> ScriptedBackend:
    return ScriptedBackend({FIRST: 1.0, FAST: 0.5, SLOW: 2.0})


@pytest.fixture
def context(tmp_path: Path, backend: ScriptedBackend) -> Iterator[TuningContext]:
    made = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend})
    yield made
    made.close()


@pytest.fixture
def run(context: TuningContext, backend: ScriptedBackend) -> Callable[[int], str]:
    """Runs the product of m rows as an operation would, and returns its params."""

    def call(m: int) -> str:
        params = f"taN_m{m}_n3_k5_bias0_dev0"
        problem: GemmProblem = parse_signature(OP, params)
        context.resolve(problem, backend)
        return params

    return call


@pytest.fixture
def serve(context: TuningContext) -> Iterator[Callable[..., Service]]:
    """Starts the service; it is stopped at the end."""
    started: list[Service] = []

    def begin(**options: Any) -> Service:
        started.append(start(context=context, **options))
        return started[-1]

    yield begin
    for service in started:
        service.stop()


@pytest.fixture
def service(serve: Callable[..., Service]) -> Service:
    return serve()


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    """A client that may change things."""
    headers = {"Authorization": f"Bearer {service.token}"}
    with httpx.Client(base_url=service.url + "api/v1/", headers=headers, timeout=20) as made:
        yield made


@pytest.fixture
def stranger(service: Service) -> Iterator[httpx.Client]:
    """A client without a token."""
    with httpx.Client(base_url=service.url + "api/v1/", timeout=20) as made:
        yield made
