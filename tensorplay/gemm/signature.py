"""Signatures: the op and params text under which a problem's winner is recorded.

The plain case reads as in the results file's oldest lines, `taN_m512_n1024_k256_bias0_dev0`. Whatever is not
plain follows as further `_name value` fields, in a fixed order, so that one problem has one text.

In this text `a` is the *right* operand and `b` the left one. cuBLASLt is column-major: for a row-major
`left @ right` it computes `right^T left^T`, so what it calls A is our right operand. m, n and k stay row-major.
"""

import re
from typing import NamedTuple

from tensorplay.errors import ShapeError, SignatureError
from tensorplay.gemm.dtype import DTYPES, dtype_of_word
from tensorplay.gemm.problem import CPU, GemmProblem

__all__ = ["OP_PREFIX", "Signature", "is_signature", "parse_signature", "signature_of"]

OP_PREFIX = "GemmTunableOp_"

_WORDS = "|".join(dtype.word for dtype in DTYPES)
_NARROW_WORDS = tuple(dtype.word for dtype in DTYPES if dtype.itemsize == 1)
_OPS = frozenset(OP_PREFIX + dtype.word for dtype in DTYPES)
# Bounded digits without leading zeros: one number has one text, and no file can ask for a giant integer.
_SIZE = r"[1-9]\d{0,17}"
_COUNT = rf"(?:0|{_SIZE})"
_PARAMS = re.compile(
    rf"ta(?P<ta>[NT])_m(?P<m>{_SIZE})_n(?P<n>{_SIZE})_k(?P<k>{_SIZE})_bias(?P<bias>[01])"
    rf"_dev(?P<dev>{CPU}|{_COUNT})"
    rf"(?P<tb>_tbT)?(?:_lda(?P<lda>{_SIZE}))?(?:_ldb(?P<ldb>{_SIZE}))?(?:_ldc(?P<ldc>{_SIZE}))?"
    rf"(?:_batch(?P<batch>[2-9]|[1-9]\d{{1,17}}))?"
    rf"(?:_stridea(?P<stridea>{_COUNT}))?(?:_strideb(?P<strideb>{_COUNT}))?(?:_stridec(?P<stridec>{_COUNT}))?"
    rf"(?:_act(?P<act>relu|gelu))?(?P<beta>_beta1)?(?:_out(?P<out>{_WORDS}))?(?:_align(?P<align>[1248]))?"
    rf"(?:_acc(?P<acc>{_WORDS}))?(?:_ws(?P<ws>{_COUNT}))?(?:_typeb(?P<typeb>{'|'.join(_NARROW_WORDS)}))?",
    re.ASCII,
)
_PLAIN = re.compile(rf"ta[NT]_m{_SIZE}_n{_SIZE}_k{_SIZE}_bias[01]_dev(?:{CPU}|{_COUNT})", re.ASCII)


class Signature(NamedTuple):
    """The op and params text of a problem: the key of its winner in every file and map."""

    op: str
    params: str


def _optional(name: str, value: object) -> str:
    return "" if value is None else f"_{name}{value}"


def signature_of(problem: GemmProblem) -> Signature:
    """Return the text that stands for `problem`."""
    plain = (
        f"ta{'T' if problem.transpose_right else 'N'}_m{problem.m}_n{problem.n}_k{problem.k}"
        f"_bias{int(problem.bias)}_dev{problem.device}"
    )
    further = (
        "_tbT" if problem.transpose_left else "",
        _optional("lda", problem.ld_right),
        _optional("ldb", problem.ld_left),
        _optional("ldc", problem.ld_out),
        _optional("batch", problem.batch if problem.batch > 1 else None),
        _optional("stridea", problem.stride_right),
        _optional("strideb", problem.stride_left),
        _optional("stridec", problem.stride_out),
        _optional("act", problem.activation if problem.activation != "none" else None),
        "_beta1" if problem.accumulate else "",
        _optional("out", problem.out_dtype.word if problem.out_dtype else None),
        _optional("align", problem.alignment if problem.alignment < 16 else None),
        _optional("acc", problem.accumulation.word if problem.accumulation else None),
        _optional("ws", problem.workspace_mib),
        _optional("typeb", problem.left_dtype.word if problem.left_dtype else None),
    )
    return Signature(OP_PREFIX + problem.dtype.word, plain + "".join(further))


def parse_signature(op: str, params: str) -> GemmProblem:
    """Return the problem that the text stands for; exact inverse of `signature_of`.

    Raises
    ------
    SignatureError
        When the text is not what `signature_of` would write for any problem.
    """
    if op not in _OPS:
        raise SignatureError(f"op {op!r} is unknown; allowed: {OP_PREFIX} and one of {_WORDS.replace('|', ', ')}")
    match = _PARAMS.fullmatch(params)
    if match is None:
        raise SignatureError(
            f"params {params!r} are malformed; allowed: ta{{N|T}}_m_n_k_bias{{0|1}}_dev, then the further fields"
        )
    field = match.groupdict()

    def number(name: str) -> int | None:
        return None if field[name] is None else int(field[name])

    try:
        return GemmProblem(
            dtype=dtype_of_word(op.removeprefix(OP_PREFIX)),
            m=int(field["m"]),
            n=int(field["n"]),
            k=int(field["k"]),
            transpose_right=field["ta"] == "T",
            transpose_left=field["tb"] is not None,
            bias=field["bias"] == "1",
            device=field["dev"],
            ld_left=number("ldb"),
            ld_right=number("lda"),
            ld_out=number("ldc"),
            batch=number("batch") or 1,
            stride_left=number("strideb"),
            stride_right=number("stridea"),
            stride_out=number("stridec"),
            activation=field["act"] or "none",
            accumulate=field["beta"] is not None,
            out_dtype=dtype_of_word(field["out"]) if field["out"] else None,
            alignment=number("align") or 16,
            accumulation=dtype_of_word(field["acc"]) if field["acc"] else None,
            workspace_mib=number("ws"),
            left_dtype=dtype_of_word(field["typeb"]) if field["typeb"] else None,
        )
    except ShapeError as error:
        raise SignatureError(f"params {params!r} describe no product: {error}") from None


def is_signature(op: str, params: str) -> bool:
    """Return whether `parse_signature` would accept the text; a large file asks for many, so no problem is built."""
    if op not in _OPS:
        return False
    if _PLAIN.fullmatch(params) is not None:
        return True
    match = _PARAMS.fullmatch(params)
    return match is not None and _is_consistent(op.removeprefix(OP_PREFIX), match)


def _is_consistent(word: str, match: re.Match[str]) -> bool:
    """Return whether `GemmProblem` takes what the text says: the rules that no pattern expresses."""
    m, n, k, ta, tb = match.group("m", "n", "k", "ta", "tb")
    padded = zip(match.group("lda", "ldb", "ldc"), (k if ta == "T" else n, m if tb else k, n), strict=True)
    if any(ld is not None and int(ld) <= int(least) for ld, least in padded):
        return False
    if match["typeb"] is not None and (match["typeb"] == word or word not in _NARROW_WORDS):
        return False
    return match["batch"] is not None or match.group("stridea", "strideb", "stridec") == (None, None, None)
