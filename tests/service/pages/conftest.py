"""Pages over a real context on a scripted device, asked for without a socket and without a script."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

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


class _Forms(HTMLParser):
    """The forms of a page as a browser has them: which control belongs to which, and what it sends."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[dict[str, str]] = []
        self.controls: list[tuple[dict[str, str], dict[str, str]]] = []
        self.buttons: list[tuple[dict[str, str], dict[str, str]]] = []
        self._inside: dict[str, str] | None = None
        self._select: dict[str, str] | None = None
        self._label = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            assert self._inside is None, "forms within forms are none"
            self._inside = found
            self.forms.append(found)
        owner = self._inside
        if "form" in found:
            (owner,) = [each for each in self.forms if each.get("id") == found["form"]]
        if tag == "button" and owner is not None:
            self.buttons.append((owner, found | {"label": ""}))
            self._label = True
        elif tag == "input" and owner is not None:
            self.controls.append((owner, found))
        elif tag == "select" and owner is not None:
            self._select = found
            self.controls.append((owner, found))
        elif tag == "option" and self._select is not None and ("selected" in found or "value" not in self._select):
            self._select["value"] = found.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = None
        elif tag == "button":
            self._label = False
        elif tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._label:
            self.buttons[-1][1]["label"] += data.strip()


class NoScript:
    """A browser that runs no script: it shows a page, and sends what a button of it says."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.page: httpx.Response

    def show(self, path: str) -> httpx.Response:
        self.page = self.client.get(path)
        return self.page

    def press(self, label: str, has: str = "", picks: Sequence[str] = (), **typed: str) -> httpx.Response:
        """Press the first button of a label whose call has a text, after typing into its form."""
        found = _Forms(self.page.text)
        form, button = next(
            each for each in found.buttons if each[1]["label"] == label and has in each[1].get("value", "")
        )
        assert "disabled" not in button, label
        pairs: list[tuple[str, str]] = []
        for owner, control in found.controls:
            name = control.get("name", "")
            if owner is not form or not name or "disabled" in control:
                continue
            value = typed.get(name, control.get("value", ""))
            if control.get("type") != "checkbox" or value in picks:
                pairs.append((name, value))
        if "name" in button:
            pairs.append((button["name"], button["value"]))
        assert form["method"] == "post"
        self.page = self.client.post(
            self.page.url.join(form["action"]),
            content=urlencode(pairs),
            headers={
                "Content-Type": "application/x-www-form-urlencoded",
                "Origin": f"{self.page.url.scheme}://{self.page.url.netloc.decode()}",
            },
        )
        return self.page

    def sign_in(self, token: str) -> None:
        """Enter the token as a person does."""
        self.show("login")
        assert self.press("Sign in", token=token).status_code == 200


@pytest.fixture
def no_script() -> Iterator[Callable[[str], NoScript]]:
    """Opens such a browser at an address that ends in a slash."""
    with ExitStack() as stack:
        yield lambda url: NoScript(
            stack.enter_context(httpx.Client(base_url=url, headers=HTML, timeout=20, follow_redirects=True))
        )
