"""What needs no script: forms without fields that start a job, and the token for them."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start

OP, PARAMS = "GemmTunableOp_Float32", "taN_m{}_n3_k5_bias0_dev0"
NAME = "tunableop_untuned7.csv"
PAGE = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}


@pytest.fixture
def service(context: TuningContext, tmp_path: Path, run: Callable[[int], str]) -> Iterator[Service]:
    run(1)
    lines = "".join(f"{OP},{PARAMS.format(m)}\n" for m in (1, 8, 9))
    (tmp_path / NAME).write_text(lines, encoding="utf-8")
    with start(context=context) as made:
        yield made


@pytest.fixture
def browser(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, headers=PAGE, timeout=20, follow_redirects=True) as made:
        yield made


def _sign_in(browser: httpx.Client, service: Service, next_page: str = "") -> httpx.Response:
    return browser.post("login", data={"token": service.token, "next": next_page})


def _action(text: str, label: str) -> str:
    (found,) = re.findall(rf'<form method="post" action="([^"]+)"[^>]*><button[^>]*>{label}', text)
    return str(found)


def _ended(browser: httpx.Client) -> dict[str, object]:
    (job,) = browser.get("api/v1/jobs").json()["items"]
    ended: dict[str, object] = browser.get(f"api/v1/jobs/{job['id']}", params={"wait": 20}).json()
    return ended


def test_a_file_of_untuned_signatures_is_tuned(browser: httpx.Client, service: Service, context: TuningContext) -> None:
    _sign_in(browser, service)
    page = browser.get("devices")
    assert page.headers["referrer-policy"] == "same-origin", "else a browser sends the form as if from nowhere"
    assert page.text.count('data-body="{&#34;kind&#34;: &#34;tune&#34;') == 1
    shown = browser.post(_action(page.text, "Tune these"))
    assert (shown.status_code, shown.url.path) == (200, "/jobs")
    assert [each.status_code for each in shown.history] == [303]
    assert (_ended(browser)["state"], _ended(browser)["total"]) == ("succeeded", 3)
    assert {PARAMS.format(m) for m in (8, 9)} <= {row[1] for row in context.get_results()}


def test_all_untuned_signatures_are_tuned(
    browser: httpx.Client, service: Service, context: TuningContext, run: Callable[[int], str]
) -> None:
    context.tuning_disable()
    params = run(6)
    _sign_in(browser, service)
    page = browser.get("untuned")
    assert page.headers["referrer-policy"] == "same-origin"
    assert browser.post(_action(page.text, "Tune all 1")).url.path == "/jobs"
    assert _ended(browser)["state"] == "succeeded"
    assert params in {row[1] for row in context.get_results()}


@pytest.mark.parametrize(("path", "page"), [("untuned/tune", "untuned"), (f"devices/tune/{NAME}", "devices")])
def test_who_is_not_signed_in_is_asked_for_the_token_and_comes_back_to_the_page(
    browser: httpx.Client, service: Service, path: str, page: str
) -> None:
    asked = browser.post(path)
    assert asked.status_code == 401
    assert "Changing something needs the token" in asked.text and "not the token of this process" not in asked.text
    assert f'name="next" value="{page}"' in asked.text
    assert browser.get("api/v1/jobs").json()["items"] == []
    assert _sign_in(browser, service, page).url.path == f"/{page}"


@pytest.mark.parametrize("path", ["untuned/tune", f"devices/tune/{NAME}"])
def test_another_page_starts_nothing(browser: httpx.Client, service: Service, path: str) -> None:
    _sign_in(browser, service)
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        assert browser.post(path, headers=headers).status_code == 403
    assert browser.post(path, data={"x": "1"}).status_code == 415
    assert browser.get(path).status_code == 405
    assert browser.get("api/v1/jobs").json()["items"] == []


@pytest.mark.parametrize("name", ["none.csv", "..%2Fx.csv", "%2Fetc%2Fpasswd", "a b.csv", "x.txt"])
def test_a_name_that_is_no_file_here_starts_nothing(browser: httpx.Client, service: Service, name: str) -> None:
    _sign_in(browser, service)
    answer = browser.post(f"devices/tune/{name}")
    assert answer.status_code in {404, 422}
    assert "text/html" in answer.headers["content-type"]
    assert browser.get("api/v1/jobs").json()["items"] == []


def test_what_is_read_only_offers_and_does_nothing(
    context: TuningContext, tmp_path: Path, run: Callable[[int], str]
) -> None:
    run(1)
    (tmp_path / NAME).write_text(f"{OP},{PARAMS.format(9)}\n", encoding="utf-8")
    with (
        start(context=context, read_only=True) as service,
        httpx.Client(base_url=service.url, headers=PAGE, timeout=20) as browser,
    ):
        assert re.search(r'action="[^"]+tune/[^"]+"[^>]*><button disabled>', browser.get("devices").text)
        answer = browser.post(f"devices/tune/{NAME}")
        assert answer.status_code == 403
        assert "read-only" in answer.text
