"""What the page of a result shows of its samples, and the address in the strip, as a browser has them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tensorplay.service import Service

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
TABLE = "details:has-text('As a table')"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_samples_are_a_picture_and_a_table_that_everyone_can_read(
    open_page: Open, first_result: str, axe: str, scheme: str
) -> None:
    page = open_page(first_result, color_scheme=scheme, bypass_csp=True)
    assert page.locator("svg.samples rect").count() >= 4
    assert page.locator("svg.samples text").count() >= 2
    page.click(f"{TABLE} summary")
    counts = page.locator(f"{TABLE} tbody td.num").all_inner_texts()
    pairs = int(page.locator("section:has(#h-confirm) p").first.inner_text().split()[0])
    assert sum(map(int, counts)) == 2 * pairs
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert [each["id"] for each in found["violations"]] == []


def test_the_table_of_samples_opens_without_a_script_and_fits_a_telephone(open_page: Open, first_result: str) -> None:
    page = open_page(first_result, java_script_enabled=False, viewport={"width": 360, "height": 740})
    page.click(f"{TABLE} summary")
    assert page.locator(f"{TABLE} table").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_strip_links_to_the_service_under_its_own_address(open_page: Open, service: Service, seeded: None) -> None:
    del seeded
    page = open_page("results?q=m128")
    link = page.locator(".strip a.address")
    assert link.inner_text() == service.url
    assert link.evaluate("each => each.href") == service.url
