"""Cookies of every server of a host reach us: none of them delays us, shuts somebody out, or lets somebody in."""

import sys
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from tensorplay.service import Service
from tensorplay.service.cookies import cookies_named

HOSTILE = ['"' + "\\" * 16000 + '"', '"' + '\\"' * 8000 + '"', "a=" * 8000, ";" * 16000, '"\\073=' * 2000]


@pytest.fixture
def browser(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url) as made:
        assert made.get(service.login_url.removeprefix(service.url)).status_code == 200
        yield made


def sent(*values: str) -> Headers:
    return Headers(raw=[(b"cookie", value.encode("latin-1")) for value in values])


def test_the_values_of_a_name_are_found_in_their_order() -> None:
    assert cookies_named(sent("a=1; b=2;a = 3", "ab=4; a=5=6; a"), "a") == ["1", "3", "5=6", ""]
    assert cookies_named(sent(), "a") == []


@given(st.lists(st.text(st.characters(max_codepoint=255), max_size=40), max_size=4), st.text(max_size=4))
def test_no_text_is_an_error_or_more_than_a_few_values(headers: list[str], name: str) -> None:
    assert len(cookies_named(sent(*headers), name)) <= 16


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_header_takes_as_many_steps_as_it_has_pairs(value: str) -> None:
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        cookies_named(sent(f"x={value}"), "mine")
    finally:
        sys.setprofile(None)
    assert calls < 10 * (value.count(";") + 10)


def test_a_cookie_of_the_same_name_shuts_no_browser_out(service: Service, browser: httpx.Client) -> None:
    ((name, value),) = browser.cookies.items()
    plain = {"Content-Type": "application/json"}
    for others in (f"{name}=junk; {name}={value}", f'{name}={value}; {name}="\\'):
        answer = httpx.patch(f"{service.url}api/v1/switches", json={}, headers=plain | {"Cookie": others})
        assert answer.status_code == 200, others
    many = "; ".join([f"{name}=junk"] * 20 + [f"{name}={value}"])
    assert httpx.patch(f"{service.url}api/v1/switches", json={}, headers={"Cookie": many}).status_code == 401


def test_signing_out_ends_every_value_that_was_sent(service: Service, browser: httpx.Client) -> None:
    ((name, value),) = browser.cookies.items()
    headers = {"Cookie": f"{name}=junk; {name}={value}"}
    assert httpx.post(f"{service.url}logout", json={}, headers=headers).status_code == 204
    assert httpx.patch(f"{service.url}api/v1/switches", json={}, headers=headers).status_code == 401
