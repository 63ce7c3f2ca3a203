"""The page of the files names every field, word, option and validator that the code knows."""

import re
from collections.abc import Callable
from dataclasses import fields

from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.source import further_sources
from tensorplay.backends.host import kernels
from tensorplay.backends.host.backend import HostBackend
from tensorplay.database.csv_text import FORMAT_VALIDATOR
from tensorplay.gemm import signature
from tensorplay.gemm.dtype import DTYPES
from tensorplay.gemm.kernel_id import LtKernelId
from tensorplay.gemm.problem import ACTIVATIONS, ALIGNMENTS, CPU

Docs = Callable[[str], str]
Names = Callable[[str], list[str]]
Rows = Callable[..., list[list[str]]]

_PLAIN = {"ta", "m", "n", "k", "bias", "dev"}


def test_every_field_of_the_params_has_a_row_in_its_order(docs: Docs, rows: Rows, names: Names) -> None:
    listed = [name for row in rows(docs("file_format.md"), "Field", "Values") for name in names(row[0])]
    groups = signature._PARAMS.groupindex
    fields = [name if name in _PLAIN else f"_{name}" for name in sorted(groups, key=groups.__getitem__)]
    assert [name.replace("_tbT", "_tb") for name in listed] == fields


def test_the_values_of_the_fields_are_those_that_are_allowed(docs: Docs, rows: Rows) -> None:
    values = {row[0].strip("`"): row[1] for row in rows(docs("file_format.md"), "Field", "Values")}
    assert re.findall(r"\w+", values["_act"]) == list(ACTIVATIONS[1:])
    assert re.findall(r"\d+", values["_align"]) == [str(alignment) for alignment in ALIGNMENTS[1:]]


def test_every_data_type_is_named(docs: Docs, names: Names) -> None:
    op = docs("file_format.md").partition("### Op\n")[2].partition("###")[0]
    assert [name for name in names(op) if name != signature.OP_PREFIX] == [dtype.word for dtype in DTYPES]


def test_the_attributes_of_a_cublaslt_kernel_are_named(docs: Docs) -> None:
    template = str(LtKernelId(*range(1, 10)))
    assert re.sub(r"\d", "{}", template) in docs("file_format.md")


def test_the_kernels_of_the_further_sources_of_a_gpu_are_named(docs: Docs, names: Names) -> None:
    attributes = (field.name for field in fields(Configuration))
    kernels_named = {names(line)[0] for line in docs("file_format.md").splitlines() if line.startswith("- `")}
    assert {"cublas", "skinny_" + "_".join(f"{name}{{}}" for name in attributes)} <= kernels_named
    assert {*further_sources(), "cublaslt"} == set(CublasLtBackend.sources)


def test_every_option_of_the_host_has_a_row(docs: Docs, rows: Rows, names: Names) -> None:
    listed = {name for row in rows(docs("file_format.md"), "Option", "Means") for name in names(row[0])}
    known = {*(f"{name}1" for name in kernels._WRAPPERS), *(f"{name}{{b}}" for name in kernels._BLOCKS)}
    assert listed == known | {"dot1", "outer1", "threads{t}"}


def test_every_source_is_named(docs: Docs, names: Names) -> None:
    assert set(kernels.SOURCES) <= set(names(docs("file_format.md")))


def test_every_validator_of_the_host_has_a_row(docs: Docs, rows: Rows) -> None:
    listed = [row[0].strip("`") for row in rows(docs("file_format.md"), "Name", "Value")]
    validators = (FORMAT_VALIDATOR, *HostBackend().validators(CPU))
    assert listed == [validator.name for validator in validators]
    assert f"The generation of this format, {FORMAT_VALIDATOR.value}" in docs("file_format.md")
