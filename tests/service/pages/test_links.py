from urllib.parse import parse_qs, urlsplit

import pytest

from tensorplay.service.pages.links import form_action


@pytest.mark.parametrize("on", ["", "jobs", "results?q=a%20b&sort=-time_ms", "results/0123456789abcdef"])
def test_a_form_says_what_page_it_is_on(on: str) -> None:
    address = urlsplit(form_action("../", on))
    assert address.path == "../do"
    assert parse_qs(address.query, keep_blank_values=True) == {"on": [on]}


def test_a_long_filter_is_left_out_before_the_address_is_refused() -> None:
    assert form_action("./", "results?q=" + "%20" * 600) == "./do?on=results"
    assert len(form_action("./", "results?q=" + "%" * 990)) < 4096
