"""Bodies of very many values are refused before they are read, and what is wrong with a body is told of once."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.body_values import MOST_VALUES, check_values
from tensorplay.service.problems import Problem

HEADERS = {"Content-Type": "application/json"}
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=5),
    max_leaves=30,
)


def counted(value: object) -> int:
    """Return how many lists, objects and members there are."""
    if isinstance(value, dict):
        return 1 + sum(1 + counted(each) for each in value.values())
    return 1 + sum(1 + counted(each) for each in value) if isinstance(value, list) else 0


@given(VALUES)
def test_no_values_are_too_many_for_what_is_counted(value: object) -> None:
    body = json.dumps(value).encode()
    marks = sum(map(body.count, (b",", b"[", b"{")))
    # Of each list and object the first member has no comma.
    assert counted(value) <= 2 * marks
    check_values(body)


@pytest.mark.parametrize("mark", [b",", b"[", b"{"])
def test_one_too_many_is_refused(mark: bytes) -> None:
    check_values(mark * MOST_VALUES)
    with pytest.raises(Problem) as refused:
        check_values(mark * (MOST_VALUES + 1))
    assert (refused.value.status, refused.value.code) == (413, "too-many-values")


@pytest.mark.parametrize("item", ["[]", "1", '{"op":"a"}'])
def test_a_body_of_very_many_values_is_refused_unread(client: httpx.Client, item: str) -> None:
    body = f'{{"source":{{"signatures":[{",".join([item] * 90_000)}]}}}}'
    answer = client.post("jobs", content=body, headers=HEADERS)
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:tensorplay:problem:too-many-values")


def test_as_many_signatures_as_a_job_takes_are_read(client: httpx.Client) -> None:
    signatures = [{"op": "GemmTunableOp_Float32", "params": f"taN_m{m}_n3_k5_bias0_dev0"} for m in range(1, 10_000)]
    answer = client.post("jobs", json={"source": {"signatures": [*signatures, {"op": "x", "params": "y"}]}})
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:tensorplay:problem:bad-signature")


@pytest.mark.parametrize(
    "document",
    [
        {"source": {"untuned": True}, **{f"further{number}": 0 for number in range(20_000)}},
        {"source": {"signatures": [{"no": 0, "other": 0}] * 9_000}},
    ],
)
def test_what_is_wrong_many_times_is_told_of_a_few_times(client: httpx.Client, document: object) -> None:
    answer = client.post("jobs", json=document)
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) < 10
