"""What a browser's cookie holds: never the token, and nothing that outlives its use."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tensorplay.service import Service
from tensorplay.service.sessions import Sessions

CHANGE = {"tuning": False}


@pytest.fixture
def browser(service: Service) -> Iterator[httpx.Client]:
    """A browser that is signed in."""
    with httpx.Client(base_url=service.url, timeout=20) as made:
        assert made.get(service.login_url).status_code == 200
        yield made


def value_of(browser: httpx.Client) -> str:
    ((_, value),) = browser.cookies.items()
    return value


def test_the_cookie_is_not_the_token_and_lets_the_browser_change_things(
    service: Service, browser: httpx.Client
) -> None:
    assert service.token not in str(browser.cookies)
    assert browser.patch("api/v1/switches", json=CHANGE).status_code == 200


@pytest.mark.parametrize("header", ["Authorization", "X-TensorPlay-Token"])
def test_a_header_with_the_value_of_a_cookie_is_refused(service: Service, browser: httpx.Client, header: str) -> None:
    value = value_of(browser)
    sent = f"Bearer {value}" if header == "Authorization" else value
    assert httpx.patch(service.url + "api/v1/switches", json=CHANGE, headers={header: sent}).status_code == 401


def test_the_token_is_no_cookie(service: Service, browser: httpx.Client) -> None:
    (name,) = browser.cookies
    cookie = {"Cookie": f"{name}={service.token}"}
    assert httpx.patch(service.url + "api/v1/switches", json=CHANGE, headers=cookie).status_code == 401


def test_signing_out_ends_the_value_and_not_only_the_cookie(service: Service, browser: httpx.Client) -> None:
    (name,), value = browser.cookies, value_of(browser)
    assert browser.post("logout").status_code == 204
    cookie = {"Cookie": f"{name}={value}"}
    assert httpx.patch(service.url + "api/v1/switches", json=CHANGE, headers=cookie).status_code == 401


def test_each_browser_is_signed_in_by_itself(service: Service, browser: httpx.Client) -> None:
    with httpx.Client(base_url=service.url, timeout=20) as other:
        other.post("login", headers={"X-TensorPlay-Token": service.token})
        assert value_of(other) != value_of(browser)
        browser.post("logout")
        assert other.patch("api/v1/switches", json=CHANGE).status_code == 200


def test_wrong_tokens_of_others_keep_no_browser_out(serve: Callable[..., Service]) -> None:
    service = serve(token="short-one")  # noqa: S106 - of this test
    with httpx.Client(base_url=service.url, timeout=20) as browser:
        browser.get(service.login_url)
        for number in range(7):
            httpx.patch(service.url + "api/v1/switches", json={}, headers={"Authorization": f"Bearer {number}"})
        assert browser.patch("api/v1/switches", json=CHANGE).status_code == 200


def test_stopping_signs_every_browser_out(service: Service, browser: httpx.Client) -> None:
    sessions: Sessions = service._app.state.tensorplay_sessions
    value = value_of(browser)
    assert sessions.is_open(value)
    service.stop()
    assert not sessions.is_open(value)


def test_the_one_unused_for_longest_ends_where_there_are_too_many() -> None:
    sessions = Sessions()
    first, second = sessions.open(), sessions.open()
    assert sessions.is_open(first)
    others = [sessions.open() for _ in range(63)]
    assert [sessions.is_open(each) for each in (first, second, others[-1])] == [True, False, True]


def test_what_is_none_is_not_open_and_can_be_closed() -> None:
    sessions = Sessions()
    for value in (None, "", "é", "x" * 100000):
        sessions.close(value)
        assert not sessions.is_open(value)
