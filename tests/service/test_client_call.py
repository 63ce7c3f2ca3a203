"""What a client is made with: any text is an address and a token, or is refused as a `ValueError`."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.client.call import authorization_of, connection_of

ANY = st.text(st.characters(exclude_categories=()))
"""Lone surrogates too, as a command line that is no UTF-8 has them."""


@given(st.one_of(ANY, ANY.map("http://".__add__), ANY.map("http://h".__add__), ANY.map("http://h/".__add__)))
def test_any_url_makes_a_client_or_is_refused(url: str) -> None:
    try:
        connection = connection_of(url, None, 1.0, None, httpx.HTTPTransport)
    except ValueError:
        return
    with httpx.Client(**connection) as client:
        client.build_request("GET", "api/v1/instance")


@given(st.one_of(ANY, st.text(st.characters(max_codepoint=160))))
def test_any_token_fits_a_header_or_is_refused_and_not_repeated(token: str) -> None:
    told: list[str] = []
    headers: dict[str, str] = {}
    try:
        headers = authorization_of(f"secret{token}")
    except ValueError as error:
        told.append(str(error))
    assert (not headers) is bool(told)
    assert "secret" not in "".join(told)
    for value in headers.values():
        assert value == value.strip()
        assert value.isascii()
        assert value.isprintable()


def test_the_end_of_its_line_is_no_part_of_a_token_and_an_empty_one_is_none() -> None:
    assert authorization_of("secret\r\n") == {"Authorization": "Bearer secret"}
    assert authorization_of("") == authorization_of(None) == authorization_of("\n") == {}


def test_an_address_that_is_refused_is_told_without_its_password() -> None:
    with pytest.raises(ValueError, match="h/") as refused:
        connection_of("http://me:hidden@h/?x=1", None, 1.0, None, httpx.HTTPTransport)
    assert "hidden" not in str(refused.value)
