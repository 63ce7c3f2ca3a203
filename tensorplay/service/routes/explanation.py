"""Why a signature runs what it runs, asked for by the signature itself, whether or not it has a winner."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from tensorplay.errors import SignatureError
from tensorplay.gemm import Signature, parse_signature
from tensorplay.service.explanation_schemas import ExplanationModel, RejectedKernel
from tensorplay.service.identity import result_id
from tensorplay.service.problems import Problem, no_signature
from tensorplay.service.state import NOT_CHANGED, IfNoneMatch, Shared, State
from tensorplay.service.worker import BUSY

__all__ = ["router"]

_Op = Annotated[str, Query(max_length=200, description="The op of the signature.", examples=["GemmTunableOp_Float32"])]
_Params = Annotated[
    str, Query(max_length=400, description="The params of the signature.", examples=["taN_m512_n1024_k256_bias0_dev0"])
]
# What there is to tell of a signature without a winner; that it was called is what the list of untuned ones says.
_TELLING = ("kernel", "verdict", "pinned", "not_measured", "background", "rejections")
_SAME = tuple(name for name in ExplanationModel.model_fields if name not in {"result_id", "captured", "rejections"})

router = APIRouter(tags=["results"])


@router.get("/explain", operation_id="results_explain", response_model=ExplanationModel, responses=NOT_CHANGED | BUSY)
async def explain_signature(state: Shared, op: _Op, params: _Params, if_none_match: IfNoneMatch = None) -> Any:
    """Return why a signature runs what it runs: its winner, all candidates with their times, and why they were dropped.

    What another process measured is read from the file of explanations.
    """
    signature = Signature(op, params)
    identity = result_id(op, params)
    has_winner = (await state.runtime.winners.get()).get(identity) is not None
    if not has_winner:
        await _check_met(state, signature)
    try:
        told = await state.worker.read(partial(state.runtime.context.explain, op, params))
    except SignatureError as error:
        raise no_signature("op and params are", error) from None
    if not any(told[name] for name in _TELLING):
        raise _nothing_known()
    text = _model_of(told, identity).model_dump_json()
    # Calls are counted without a revision of their own, so that the answer itself says whether it has changed.
    tag = f'"e{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"'
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return Response(text, media_type="application/json", headers={"ETag": tag})


async def _check_met(state: State, signature: Signature) -> None:
    """Raise a `Problem` for what is no signature, 422, or is of a device that was not met, 404: none is touched."""
    try:
        problem = parse_signature(*signature)
    except SignatureError as error:
        raise no_signature("op and params are", error) from None
    if problem.device not in {each.device for each in await state.runtime.met.listed()}:
        raise _nothing_known()


def _model_of(told: Mapping[str, Any], identity: str) -> ExplanationModel:
    return ExplanationModel(
        **{name: told[name] for name in _SAME},
        result_id=identity if told["kernel"] is not None else None,
        captured=told["pinned"],
        rejections=[
            RejectedKernel(kernel=kernel, reason=reason, healed=healed)
            for _, _, kernel, reason, healed in told["rejections"]
        ],
    )


def _nothing_known() -> Problem:
    detail = "there is no winner of this signature, and nothing that explains why; GET /untuned lists what ran without"
    return Problem(404, "not-found", detail)
