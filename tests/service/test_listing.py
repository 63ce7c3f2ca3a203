"""The list of winners by itself: every page of every sorting holds what it should."""

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.runtime.archive import Recorded
from tensorplay.service.export import as_csv, safe_cell
from tensorplay.service.listing import SORT_KEYS, Filter, ResultsIndex

if TYPE_CHECKING:
    from tensorplay.service.row import Row

RECORDED = st.builds(
    lambda op, m, k, ta, ms, device: Recorded(
        f"GemmTunableOp_{op}", f"ta{ta}_m{m}_n3_k{k}_bias0_dev{device}", "Default", ms, device, "file"
    ),
    st.sampled_from(["Float32", "Float64"]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from("NT"),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from(["0", "1", "cpu"]),
)


@given(
    st.lists(RECORDED, unique_by=lambda each: each[:2], max_size=30),
    st.sampled_from(SORT_KEYS),
    st.booleans(),
    st.integers(1, 7),
)
def test_pages_hold_every_row_once_in_order(recorded: list[Recorded], key: str, down: bool, limit: int) -> None:
    index = ResultsIndex(1, recorded)
    sort, after = f"{'-' if down else ''}{key}", None
    seen: list[Row] = []
    while True:
        page = index.page(Filter(), sort, limit, after)
        assert page.total == len(recorded)
        seen += page.rows
        after = page.next
        if after is None:
            break
        assert len(page.rows) == limit
    values = [(getattr(row, key), row.id) for row in seen]
    assert values == sorted(values, reverse=down)
    assert {(row.op, row.params) for row in seen} == {each[:2] for each in recorded}


@given(
    st.lists(RECORDED, unique_by=lambda each: each[:2], max_size=30),
    st.integers(0, 9),
    st.booleans(),
    st.text("m_59T", max_size=3),
)
def test_a_filter_leaves_what_it_names(recorded: list[Recorded], least: int, transposed: bool, q: str) -> None:
    wanted = Filter(m_min=least, transposed=transposed, q=q)
    found = ResultsIndex(1, recorded).page(wanted, "m", 500, None)
    expected = {
        each.params
        for each in recorded
        if int(each.params.split("_m")[1].split("_")[0]) >= least
        and each.params.startswith("taT") == transposed
        and q.lower() in ",".join(each[:3]).lower()
    }
    assert {row.params for row in found.rows} == expected
    assert found.total == len(found.rows)


@given(st.text(max_size=12))
def test_no_cell_of_an_export_starts_like_a_formula(text: str) -> None:
    assert not str(safe_cell(text)).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert str(safe_cell(text)).endswith(text)


def test_a_hostile_kernel_name_is_a_text_in_the_export() -> None:
    recorded = Recorded("GemmTunableOp_Float32", "taN_m1_n1_k1_bias0_dev0", '=cmd|"/c calc"!A0', 1.0, "0", "file")
    assert "'=cmd" in "".join(as_csv(ResultsIndex(1, [recorded]).rows(Filter()), lambda each: dict.fromkeys(each, 2.0)))


@given(
    st.lists(RECORDED, unique_by=lambda each: each[:2], max_size=20),
    st.lists(RECORDED, unique_by=lambda each: each[:2], max_size=6),
    st.data(),
)
def test_an_index_that_is_updated_is_the_one_that_is_made_anew(
    before: list[Recorded], new: list[Recorded], data: st.DataObject
) -> None:
    known = {each[:2]: each for each in before}
    index = ResultsIndex(1, before)
    key = data.draw(st.sampled_from(SORT_KEYS))
    index.page(Filter(), key, 5, None)
    gone = data.draw(st.sets(st.sampled_from(sorted(known)), max_size=4)) if known else set()
    after = {signature: each for signature, each in known.items() if signature not in gone}
    after |= {each[:2]: each._replace(pinned=True) for each in new}
    changed = gone | {each[:2] for each in new}
    updated = index.updated(2, changed, [each for signature, each in after.items() if signature in changed])
    anew = ResultsIndex(2, after.values())
    for sort in (key, "-m", "op"):
        assert list(updated.rows(Filter(), sort)) == list(anew.rows(Filter(), sort))
    assert len(updated) == len(anew) == len(after)
    assert all(signature in updated for signature in after)
    assert not any(signature in updated for signature in gone - set(after))
    assert [row.params for row in updated.rows(Filter(pinned=True), "m")] == [
        row.params for row in anew.rows(Filter(pinned=True), "m")
    ]
    assert len(index) == len(before)


def test_an_index_whose_winners_were_replaced_answers_whoever_still_has_it() -> None:
    def recorded(kernel: str) -> list[Recorded]:
        return [
            Recorded("GemmTunableOp_Float32", f"taN_m{m}_n1_k1_bias0_dev0", kernel, 1.0, "0", "file")
            for m in range(1, 5000)
        ]

    before = ResultsIndex(1, recorded("lt_1"))
    rows = before.rows(Filter(), "m")
    after = ResultsIndex(2, recorded("lt_2"), before)
    assert before.page(Filter(), "m", 1, None).rows[0].kernel == "lt_1"
    del before
    assert {row.kernel for row in rows} == {"lt_1"}
    assert len(after) == 4999
    assert {row.kernel for row in after.rows(Filter())} == {"lt_2"}
