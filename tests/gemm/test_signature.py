import dataclasses
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from tensorplay.errors import SignatureError
from tensorplay.gemm import GemmProblem, Signature, is_signature, parse_signature, signature_of
from tensorplay.gemm.dtype import DTYPES
from tensorplay.gemm.problem import LARGEST_SIZE

ProblemSpace = Callable[[int], SearchStrategy[GemmProblem]]

FLOAT32, TF32 = DTYPES[:2]
OP = "GemmTunableOp_Float32"
PLAIN = "taN_m512_n1024_k256_bias0_dev0"
EVERY_FIELD = (
    "taT_m2_n3_k4_bias1_devcpu_tbT_lda5_ldb6_ldc7_batch8_stridea9_strideb0_stridec11_actgelu_beta1"
    "_outFloat64_align4_accFloat64_ws12"
)


def test_plain_problems_read_as_the_oldest_files_do() -> None:
    first = GemmProblem(dtype=FLOAT32, m=512, n=1024, k=256, device="0")
    second = GemmProblem(dtype=TF32, m=4096, n=4096, k=4096, transpose_right=True, device="0")
    assert signature_of(first) == ("GemmTunableOp_Float32", "taN_m512_n1024_k256_bias0_dev0")
    assert signature_of(second) == ("GemmTunableOp_Tf32", "taT_m4096_n4096_k4096_bias0_dev0")


def test_in_the_text_a_is_the_right_operand() -> None:
    problem = parse_signature(OP, EVERY_FIELD)
    assert (problem.ld_right, problem.ld_left, problem.ld_out) == (5, 6, 7)
    assert (problem.stride_right, problem.stride_left, problem.stride_out) == (9, 0, 11)
    assert problem.transpose_right
    assert dataclasses.replace(problem, transpose_right=False).transpose_left


@pytest.mark.parametrize("params", [PLAIN, EVERY_FIELD, f"taN_m{LARGEST_SIZE}_n1_k1_bias0_dev{LARGEST_SIZE}"])
def test_a_text_comes_back_as_it_was(params: str) -> None:
    assert signature_of(parse_signature(OP, params)) == Signature(OP, params)


def test_operands_of_two_types_name_the_left_one_s() -> None:
    op, params = "GemmTunableOp_Float8E4M3", "taT_m16_n32_k64_bias0_dev0_outBFloat16_typebFloat8E5M2"
    problem = parse_signature(op, params)
    assert (problem.left_type.name, problem.dtype.name) == ("float8_e5m2", "float8_e4m3fn")
    assert_round_trip(problem)


@pytest.mark.parametrize(
    ("word", "other"),
    [("Float32", "Float8E4M3"), ("Float8E4M3", "Float8E4M3"), ("Float8E4M3", "Float16"), ("Float8E4M3", "Float8")],
)
def test_types_that_are_not_mixed_are_refused(word: str, other: str) -> None:
    op, params = f"GemmTunableOp_{word}", f"{PLAIN}_typeb{other}"
    assert not is_signature(op, params)
    with pytest.raises(SignatureError, match=re.escape(repr(params))):
        parse_signature(op, params)


@pytest.mark.parametrize(
    "params",
    [
        "",
        "Default",
        PLAIN + "\n",
        PLAIN + " ",
        " " + PLAIN,
        PLAIN.upper(),
        PLAIN.replace("m512", "m0512"),
        PLAIN.replace("m512", "m0"),
        PLAIN.replace("m512", "m-1"),
        PLAIN.replace("m512", "m+512"),
        PLAIN.replace("m512", "m5_12"),
        PLAIN.replace("m512", "m\u0665\u0661\u0662"),
        PLAIN.replace("m512", f"m{LARGEST_SIZE + 1}"),
        PLAIN.replace("m512", "m" + "9" * 10_000),
        PLAIN.replace("bias0", "bias2"),
        PLAIN.replace("taN", "taC"),
        PLAIN.replace("dev0", "dev00"),
        PLAIN.replace("dev0", "dev-1"),
        PLAIN.replace("_k256", ""),
        PLAIN + "_tbN",
        PLAIN + "_batch1",
        PLAIN + "_batch0",
        PLAIN + "_lda1024",
        PLAIN + "_ldb256",
        PLAIN + "_ldc1",
        PLAIN + "_stridea0",
        PLAIN + "_actnone",
        PLAIN + "_beta0",
        PLAIN + "_align16",
        PLAIN + "_outInt8",
        PLAIN + "_ws-1",
        PLAIN + "_ws1_align8",
        PLAIN + "_tbT_tbT",
        PLAIN + "_typebFloat8E5M2",
    ],
)
def test_a_text_that_stands_for_no_problem_is_refused_and_shown(params: str) -> None:
    with pytest.raises(SignatureError, match=r"^params ") as caught:
        parse_signature(OP, params)
    assert repr(params) in str(caught.value)
    assert not is_signature(OP, params)


@pytest.mark.parametrize("op", ["", "GemmTunableOp_", "GemmTunableOp_float", "GemmTunableOp_Float32 ", "Validator"])
def test_an_unknown_op_is_refused_with_the_known_types(op: str) -> None:
    with pytest.raises(SignatureError, match=re.escape(f"op {op!r} is unknown")):
        parse_signature(op, PLAIN)
    assert not is_signature(op, PLAIN)
    assert not is_signature(op, EVERY_FIELD)


def assert_round_trip(problem: GemmProblem) -> None:
    signature = signature_of(problem)
    assert parse_signature(*signature) == problem
    assert is_signature(*signature)
    assert not {",", "\n", "\r", '"', " "} & set("".join(signature))


def assert_one_spelling(op: str, params: str) -> None:
    try:
        problem = parse_signature(op, params)
    except SignatureError:
        assert not is_signature(op, params)
    else:
        assert signature_of(problem) == (op, params)
        assert is_signature(op, params)


@st.composite
def mutations(draw: st.DrawFn, text: str) -> str:
    """Draw a text that a slip, a merge or an attacker would make of a good one."""
    fields = text.split("_")
    kind = draw(st.sampled_from(["character", "swap", "repeat", "drop", "cut"]))
    if kind == "swap":
        return "_".join(draw(st.permutations(fields)))
    at = draw(st.integers(0, len(fields) - 1))
    if kind == "repeat":
        return "_".join([*fields[: at + 1], *fields[at:]])
    if kind == "drop":
        return "_".join(fields[:at] + fields[at + 1 :])
    cut = draw(st.integers(0, len(text)))
    if kind == "cut":
        return text[:cut]
    width = draw(st.integers(0, 2))
    return text[:cut] + draw(st.text("0123456789_TNmnkl\n \u0663-", max_size=2)) + text[cut + width :]


@hypothesis_settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_every_problem_comes_back_from_its_text(data: DataObject, problems_up_to: ProblemSpace) -> None:
    assert_round_trip(data.draw(problems_up_to(LARGEST_SIZE)))


@hypothesis_settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_changed_text_fails_or_is_the_text_of_what_it_says(data: DataObject, problems_up_to: ProblemSpace) -> None:
    op, params = signature_of(data.draw(problems_up_to(20)))
    assert_one_spelling(op, data.draw(mutations(params)))


@hypothesis_settings(max_examples=300, deadline=None)
@given(op=st.sampled_from([OP, "GemmTunableOp_Tf32"]) | st.text(), params=st.text())
def test_no_text_makes_the_parser_crash(op: str, params: str) -> None:
    assert_one_spelling(op, params)


@hypothesis_settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_two_problems_share_a_text_only_if_they_are_equal(data: DataObject, problems_up_to: ProblemSpace) -> None:
    one, other = data.draw(problems_up_to(2)), data.draw(problems_up_to(2))
    assert (signature_of(one) == signature_of(other)) == (one == other)


@pytest.mark.nightly
@hypothesis_settings(max_examples=10_000, deadline=None)
@given(data=st.data())
def test_ten_thousand_problems_and_changed_texts_keep_the_rules(data: DataObject, problems_up_to: ProblemSpace) -> None:
    problem = data.draw(problems_up_to(LARGEST_SIZE))
    assert_round_trip(problem)
    op, params = signature_of(problem)
    assert_one_spelling(op, data.draw(mutations(params)))
