"""Signing out, without a script: for who is signed in, and nobody else's doing."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start

TOKEN = "long-enough-not-to-be-guessed-at"  # noqa: S105 - of these tests
HTML = {"Accept": "text/html,*/*;q=0.8"}


@pytest.fixture
def service(context: TuningContext) -> Iterator[Service]:
    made = start(context=context, token=TOKEN)
    yield made
    made.stop()


def test_who_is_signed_in_signs_out(service: Service, no_script: Callable[[str], Any]) -> None:
    browser = no_script(service.url)
    assert "Sign out" not in browser.show("").text
    assert 'href="./login">Sign in</a>' in browser.page.text
    browser.sign_in(TOKEN)
    assert 'href="./login">Sign in</a>' not in browser.show("settings").text
    cookies = dict(browser.client.cookies)
    page = browser.press("Sign out")
    assert page.url.path == "/login" and "This browser is signed out." in page.text
    assert not browser.client.cookies
    assert "Sign out" not in browser.show("").text
    again = httpx.post(f"{service.url}api/v1/files/save", cookies=cookies, headers={"Sec-Fetch-Site": "same-origin"})
    assert again.status_code == 401, "its cookie means nothing any more"


def test_another_page_signs_nobody_out(service: Service, no_script: Callable[[str], Any]) -> None:
    browser = no_script(service.url)
    browser.sign_in(TOKEN)
    for headers in ({"Origin": "http://127.0.0.1:9"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}):
        assert browser.client.post("logout", headers=HTML | headers).status_code == 403
    assert "Sign out" in browser.show("").text


def test_programs_are_answered_as_before(service: Service) -> None:
    headers = {"Accept": "application/json", "X-TensorPlay-Token": TOKEN}
    assert httpx.post(f"{service.url}logout", headers=headers).status_code == 204


@pytest.mark.parametrize("path", ["login", "nothing", "results?sort=foo"])
def test_pages_of_errors_and_the_sign_in_lead_on(service: Service, path: str) -> None:
    text = httpx.get(service.url + path, headers=HTML).text
    assert '<nav aria-label="Pages">' in text and 'href="./results"' in text


def test_the_link_in_the_log_is_told_of(service: Service) -> None:
    for path in ("", "login"):
        text = httpx.get(service.url + path, headers=HTML).text
        assert "its log has a link that signs one browser in, once" in text
