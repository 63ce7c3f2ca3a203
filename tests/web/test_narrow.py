"""What a narrow window and a browser without a script show."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
IN_SIGHT = """() => {
    const tab = document.querySelector("nav [aria-current]").getBoundingClientRect();
    const nav = document.querySelector(".top nav").getBoundingClientRect();
    return tab.left >= nav.left - 1 && tab.right <= nav.right + 1;
}"""


def test_the_tab_of_a_page_is_in_sight_and_the_tools_are_one_row(open_page: Open) -> None:
    page = open_page("devices", viewport={"width": 360, "height": 740})
    assert page.evaluate(IN_SIGHT)
    tops = "[...document.querySelectorAll('.tools > *')].map((each) => each.getBoundingClientRect().top)"
    assert page.evaluate(f"Math.max(...{tops}) - Math.min(...{tops}) < 20")


def test_a_switch_is_one_word_without_a_script(open_page: Open) -> None:
    page = open_page("", java_script_enabled=False)
    words = page.locator(".switch button .text").all()
    assert len(words) == 3
    for word in words:
        box = word.bounding_box()
        assert box is not None and box["width"] > box["height"]
