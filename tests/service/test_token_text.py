"""What a token may be: what can be sent, and is not guessed in passing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.errors import SettingError
from tensorplay.runtime.context import TuningContext
from tensorplay.service import start
from tensorplay.service.app import ServiceSettings
from tensorplay.service.token_text import checked_token


@pytest.mark.parametrize("token", ["", " ", "\n", "\r\n", "\t \n", "        "])
def test_an_empty_token_is_refused(token: str) -> None:
    with pytest.raises(SettingError, match=r"the token is empty: .*secrets\.token_urlsafe"):
        ServiceSettings(token=token)


@pytest.mark.parametrize(
    "token", ["geheímnis", "token\udcff12", "tok\x00en12", "tok\nen-12", "token-12\n\n", " token-12", "token-12\x7f"]
)
def test_what_no_header_carries_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(SettingError, match="letters, digits, punctuation and blanks of ASCII") as caught:
        ServiceSettings(token=token)
    assert "tok" not in str(caught.value).replace("token", "") and "geh" not in str(caught.value)


@pytest.mark.parametrize("token", ["s3cret7", "x", "x" * 1025])
def test_a_token_of_another_length_is_refused(token: str) -> None:
    with pytest.raises(SettingError, match="allowed: 8 to 1024"):
        ServiceSettings(token=token)


def test_the_end_of_the_line_of_a_secret_in_a_file_is_no_part_of_it() -> None:
    for end in ("", "\n", "\r\n"):
        assert ServiceSettings(token=f"of-a-file{end}").token == "of-a-file"  # noqa: S105 - of this test


def test_the_token_that_is_made_up_is_one_and_is_shown_by_no_repr() -> None:
    settings = ServiceSettings()
    assert checked_token(settings.token) == settings.token
    assert settings.token not in repr(settings)


@pytest.mark.parametrize("token", ["", "short"])
def test_a_service_does_not_start_with_a_token_that_is_none(context: TuningContext, token: str) -> None:
    with pytest.raises(SettingError, match="the token"):
        start(context=context, token=token)


@given(st.text(max_size=20) | st.binary(max_size=20).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_every_token_that_is_taken_can_be_sent(text: str) -> None:
    try:
        token = checked_token(text)
    except SettingError:
        return
    assert 8 <= len(token) <= 20
    assert token.encode("ascii").strip() == token.encode()
    assert text.rstrip("\r\n") == token
