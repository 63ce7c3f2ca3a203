"""Names that a service is addressed by: taken by the program and by the environment in the same way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.errors import SettingError
from tensorplay.service.app import ServiceSettings
from tensorplay.service.host_names import checked_hosts, hosts_of


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("ml.example", "ml.example"), ("ML.Example", "ml.example"), ("worker", "worker"),
        ("my_worker-3", "my_worker-3"),
        ("10.0.0.1", "10.0.0.1"), ("::1", "::1"), ("[fd00:0::1]", "fd00::1"),
    ],
)  # fmt: skip
def test_a_name_is_kept_as_a_host_header_is_compared(name: str, kept: str) -> None:
    assert checked_hosts([name]) == {kept}
    assert ServiceSettings(hosts=frozenset({name})).hosts == {kept}


@pytest.mark.parametrize(
    "name",
    ["", "ml.example:80", "*", "*.a", "http://ml.example", "a/b", "a b", "a..b", "-a.", "é", "fe80::1%eth0", "a\n"],
)  # fmt: skip
def test_what_is_no_name_is_refused_and_says_what_is_allowed(name: str) -> None:
    for call in (lambda: checked_hosts([name]), lambda: ServiceSettings(hosts=frozenset({name}))):
        with pytest.raises(SettingError, match=r"without port, path and wildcard, such as ml\.example"):
            call()


def test_the_environment_gives_them_with_commas_between() -> None:
    assert hosts_of({}) == hosts_of({"TENSORPLAY_HOSTS": " ,"}) == frozenset()
    assert hosts_of({"TENSORPLAY_HOSTS": "worker, ML.example ,"}) == {"worker", "ml.example"}
    with pytest.raises(SettingError, match=r"TENSORPLAY_HOSTS: 'b:1' is no name"):
        hosts_of({"TENSORPLAY_HOSTS": "a,b:1"})


@given(st.text(max_size=20))
def test_no_text_is_anything_but_a_name_or_refused(text: str) -> None:
    try:
        (kept,) = checked_hosts([text])
    except SettingError:
        return
    assert kept == kept.lower()
    assert not set(kept) & set("/@,* \n%[]")
