import pytest

from tensorplay.service.pages.next_page import checked_next


@pytest.mark.parametrize(
    ("given", "page"),
    [
        ("", ""),
        ("results?q=m4&sort=-time_ms", "results?q=m4&sort=-time_ms"),
        ("results?q=" + "%E6" * 700, "results"),
        ("results?q=//evil.example", "results"),
        ("results?q=a b", "results"),
        ("results/0123456789abcdef?q=<", "results/0123456789abcdef"),
        ("?q=\r\nSet-Cookie: x", ""),
        ("//evil.example?q=<", ""),
        ("https://evil.example/?q=<", ""),
        ("a//b?x", ""),
        ("results\n", ""),
        ("results?q=x\n", "results"),
    ],
)
def test_a_page_of_ours_is_found_again_without_its_query_where_that_is_none_of_ours(given: str, page: str) -> None:
    assert checked_next(given) == page
