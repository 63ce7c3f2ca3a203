"""Winners sorted by what they gain: unknown gains last whichever way, page by page, and known ones found later."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.gemm import Signature
from tensorplay.runtime.archive import Recorded
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Client, Service
from tensorplay.service.gain_orders import GAIN_KEYS, GainOrders
from tensorplay.service.listing import Filter, ResultsIndex
from tensorplay.service.row import Row, gain_of, saved_of
from tensorplay.testing import ScriptedBackend, scripted_kernel

OP = "GemmTunableOp_Float32"
FIRST, FAST = scripted_kernel(1), scripted_kernel(2)
TIMES = st.sampled_from([0.0, 0.5, 1.0, 2.0])
VALUES = {"gain": gain_of, "saved_ms": saved_of}


def _recorded(m: int, time_ms: float) -> Recorded:
    return Recorded(OP, f"taN_m{m}_n3_k5_bias0_dev0", "Default", time_ms, "0", "file")


def _sorts() -> list[str]:
    return [sign + key for key in GAIN_KEYS for sign in ("", "-")]


def _values(rows: Iterable[Row], key: str, known: Mapping[Signature, float]) -> list[float | None]:
    return [VALUES[key](row.time_ms, known.get(row.signature)) for row in rows]


@given(
    st.lists(st.tuples(TIMES, st.none() | st.sampled_from([0.25, 1.0, 4.0, 1e308])), max_size=25),
    st.sampled_from(_sorts()),
    st.integers(1, 6),
    st.sampled_from([Filter(), Filter(m_min=5)]),
)
def test_pages_hold_every_row_once_and_what_is_not_known_last(
    times: list[tuple[float, float | None]], sort: str, limit: int, wanted: Filter
) -> None:
    recorded = [_recorded(m, time_ms) for m, (time_ms, _) in enumerate(times, 1)]
    known = {Signature(*each[:2]): first for each, (_, first) in zip(recorded, times, strict=True) if first is not None}
    index = ResultsIndex(1, recorded, first_choices=lambda _: known)
    seen: list[Row] = []
    after = None
    while True:
        page = index.page(wanted, sort, limit, after)
        assert page.known == len(recorded)
        seen += page.rows
        after = page.next
        if after is None:
            break
        assert len(page.rows) == limit
    expected = {each.params for m, each in enumerate(recorded, 1) if m >= (wanted.m_min or 0)}
    assert {row.params for row in seen} == expected
    assert len(seen) == page.total == len(expected)
    assert seen == list(index.rows(wanted, sort))
    values = _values(seen, sort.removeprefix("-"), known)
    have = [value for value in values if value is not None]
    assert values == [*sorted(have, reverse=sort.startswith("-")), *[None] * (len(values) - len(have))]


def test_a_gain_that_is_no_number_is_none() -> None:
    assert gain_of(0.5, 1.0) == 2.0
    assert saved_of(0.5, 1.0) == 0.5
    assert saved_of(1.0, 0.5) == -0.5
    for time_ms, first in ((0.5, None), (0.0, 1.0), (1e-8, 1e308)):
        assert gain_of(time_ms, first) is saved_of(time_ms, first) is None
    assert math.isfinite(gain_of(1e300, 1e-300) or 0.0)


def test_an_order_is_kept_for_a_moment_and_then_made_of_what_is_known_by_then() -> None:
    index = ResultsIndex(1, [_recorded(m, 1.0) for m in (1, 2)])
    rows = [tuple(row) for row in index.rows(Filter(), "m")]
    known: dict[Signature, float] = {}
    now, asked = 0.0, 0

    def first_choices(signatures: Iterable[Signature]) -> Mapping[Signature, float]:
        nonlocal asked
        asked += len(list(signatures))
        return known

    orders = GainOrders(first_choices, lambda: now)
    assert not orders.has("-gain")
    assert {value for value, _ in orders.places("-gain", rows)} == {math.inf}
    known[Signature(OP, str(rows[1][2]))] = 3.0
    assert orders.has("-gain") and not orders.has("gain")
    assert {value for value, _ in orders.places("-gain", rows)} == {math.inf}
    assert asked == 2
    now = 60.0
    assert not orders.has("-gain")
    assert [identity for _, identity in orders.places("-gain", rows)] == [rows[1][0], rows[0][0]]


def test_an_index_that_is_updated_sorts_what_came_by_its_gain() -> None:
    known = {Signature(*_recorded(m, 1.0)[:2]): float(m) for m in range(1, 6)}
    index = ResultsIndex(1, [_recorded(m, 1.0) for m in (1, 2, 3)], first_choices=lambda _: known)
    assert [row.m for row in index.page(Filter(), "-gain", 5, None).rows] == [3, 2, 1]
    come = [_recorded(5, 1.0), _recorded(2, 0.1)]
    updated = index.updated(2, [Signature(*each[:2]) for each in come], come)
    assert [row.m for row in updated.page(Filter(), "-gain", 5, None).rows] == [2, 5, 3, 1]


@pytest.mark.parametrize("sort", _sorts())
def test_the_api_and_its_client_sort_by_gain(
    client: httpx.Client,
    service: Service,
    run: Callable[[int], str],
    backend: ScriptedBackend,
    context: TuningContext,
    sort: str,
) -> None:
    for m, time_ms in ((1, 0.5), (2, 0.25), (3, 0.8)):
        backend._scripts[FAST] = time_ms
        run(m)
    context.override(OP, run(4), FIRST)
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = client.get("results", params={"sort": sort, "limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        items += page["items"]
        cursor = page["next"]
        if cursor is None:
            break
    values = [each[sort.removeprefix("-")] for each in items]
    assert len(values) == 4
    assert values[-1] is None
    assert values[:3] == sorted(values[:3], reverse=sort.startswith("-"))
    with Client(service.url) as typed:
        assert [each.id for each in typed.results(sort=sort, page=3)] == [each["id"] for each in items]
    assert client.get("results", params={"sort": "-m", "cursor": "x"}).status_code == 400


def test_a_cursor_of_winners_without_a_gain_goes_on_among_them(
    client: httpx.Client, run: Callable[[int], str], context: TuningContext
) -> None:
    for m in (1, 2, 3):
        context.override(OP, run(m), FIRST)
    first = client.get("results", params={"sort": "gain", "limit": 2}).json()
    assert [each["gain"] for each in first["items"]] == [None, None]
    second = client.get("results", params={"sort": "gain", "limit": 2, "cursor": first["next"]}).json()
    assert {each["m"] for each in first["items"] + second["items"]} == {1, 2, 3}
    assert client.get("results", params={"sort": "-gain", "cursor": first["next"]}).status_code == 400
