"""The page of functions lists every public one, with the arguments it has."""

import inspect
import re
from collections.abc import Callable

import pytest

import tensorplay
from tensorplay import tunable
from tensorplay.cuda import tunable as cuda_tunable
from tensorplay.runtime.listeners import EVENTS
from tensorplay.runtime.resolution import Reason

Docs = Callable[[str], str]
Names = Callable[[str], list[str]]
Rows = Callable[..., list[list[str]]]

PRODUCTS = {"mm", "addmm", "linear", "bmm", "matmul"}


def _signature(function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return f"{function.__name__}{signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)}"


def test_every_product_is_listed_with_its_arguments(docs: Docs, rows: Rows) -> None:
    listed = [row[0].strip("`") for row in rows(docs("api.md"), "Function", "What it returns")]
    assert listed == [_signature(getattr(tensorplay, text.partition("(")[0])) for text in listed]
    assert {text.partition("(")[0] for text in listed} == PRODUCTS


def test_every_public_name_of_the_package_is_on_the_page(docs: Docs) -> None:
    words = set(re.findall(r"\w+", docs("api.md")))
    assert set(tensorplay.__all__) <= words
    assert set(tensorplay.__all__) - PRODUCTS == {"__version__", "cuda", "service", "tunable"}


def test_every_function_of_tunable_is_listed_once_with_its_arguments(docs: Docs, rows: Rows) -> None:
    listed = [row[0].strip("`") for row in rows(docs("api.md"), "Function", "What it does")]
    assert sorted(text.partition("(")[0] for text in listed) == sorted(cuda_tunable.__all__)
    assert listed == [_signature(getattr(tunable, text.partition("(")[0])) for text in listed]


def test_every_event_is_listed(docs: Docs, rows: Rows) -> None:
    assert [row[0].strip("`") for row in rows(docs("api.md"), "Event", "When")] == list(EVENTS)


def test_every_counter_of_stats_is_explained(docs: Docs, names: Names) -> None:
    assert {reason.value for reason in Reason} <= set(names(docs("tune.md")))


def test_every_key_of_an_explanation_is_listed(
    docs: Docs, rows: Rows, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TP_TUNABLEOP_ENABLED", raising=False)
    listed = [name for row in rows(docs("tune.md"), "Key", "What") for name in names(row[0])]
    explained = tunable.explain("GemmTunableOp_Float32", "taN_m1_n1_k1_bias0_devcpu")
    assert sorted(listed) == sorted(explained)
