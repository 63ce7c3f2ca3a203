"""Pages over a real context on a scripted device, asked for without a socket and without a script."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.applications import Starlette

from tensorplay.gemm import parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import create_app
from tensorplay.testing import ScriptedBackend, scripted_kernel

OP = "GemmTunableOp_Float32"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

Get = Callable[..., httpx.Response]


@pytest.fixture
def backend() -> ScriptedBackend:
    return ScriptedBackend({scripted_kernel(1): 1.0, scripted_kernel(2): 0.5, scripted_kernel(3): 2.0})


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
        context.resolve(parse_signature(OP, params), backend)
        return params

    return call


@pytest.fixture
def app(context: TuningContext) -> Starlette:
    return create_app(context)


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as made:
        yield made


@pytest.fixture
def ask(app: Starlette, portal: BlockingPortal) -> Callable[..., httpx.Response]:
    """Sends a request as a browser would."""

    async def send(method: str, path: str, headers: dict[str, str], root_path: str) -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, root_path=root_path)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, root_path + path, headers=HTML | headers)

    def call(
        path: str, method: str = "GET", headers: dict[str, str] | None = None, root_path: str = ""
    ) -> httpx.Response:
        return portal.call(send, method, path, headers or {}, root_path)

    return call
