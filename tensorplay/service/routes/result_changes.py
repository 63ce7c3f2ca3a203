"""Winners, changed: pinned, overridden, gone back from, forgotten."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter, Response

from tensorplay.errors import TensorPlayError
from tensorplay.service.listing import Filter
from tensorplay.service.problems import Problem
from tensorplay.service.routes.results import Identity, model_of, row_or_404
from tensorplay.service.row import Row
from tensorplay.service.schemas import Override, ResultModel
from tensorplay.service.state import WRITES, Confirm, IfMatch, Shared, State, check_match, etag
from tensorplay.service.worker import BUSY

__all__ = ["router"]

_MOST_NAMED = 100

router = APIRouter(tags=["results"])


async def _row_to_change(state: State, identity: str, if_match: str | None) -> Row:
    row = await row_or_404(state, identity)
    check_match(state, "results", if_match, required=True)
    return row


@contextmanager
def _unless_refused(code: str) -> Iterator[None]:
    try:
        yield
    except TensorPlayError as error:
        raise Problem(409, code, str(error)) from None


def _check_free(row: Row) -> None:
    if row.pinned:
        raise Problem(409, "pinned", "this winner is pinned; unpin it first")


@router.put("/results/{identity}/pin", operation_id="results_pin", response_model=ResultModel, dependencies=WRITES)
async def pin_result(state: Shared, identity: Identity, response: Response, if_match: IfMatch = None) -> Any:
    """Keep a winner as it is, until it is unpinned or the process ends: nothing measured or loaded replaces it."""
    row = await _row_to_change(state, identity, if_match)
    with _unless_refused("not-pinned"):
        if not row.pinned and not state.runtime.context.pin_winner(row.op, row.params):
            raise Problem(404, "not-found", "there is no such winner any more")
    response.headers["ETag"] = etag(state, "results")
    return model_of(state, await row_or_404(state, identity))


@router.delete("/results/{identity}/pin", operation_id="results_unpin", status_code=204, dependencies=WRITES)
async def unpin_result(state: Shared, identity: Identity, if_match: IfMatch = None) -> None:
    """Let a winner be changed again."""
    row = await _row_to_change(state, identity, if_match)
    with _unless_refused("not-unpinned"):
        if row.pinned:
            state.runtime.context.unpin_winner(row.op, row.params)


@router.put(
    "/results/{identity}/override", operation_id="results_override", response_model=ResultModel, dependencies=WRITES
)
async def override_result(
    state: Shared, identity: Identity, given: Override, response: Response, if_match: IfMatch = None
) -> Any:
    """Record a kernel of the client's choice for a signature, after it was built for it."""
    row = await _row_to_change(state, identity, if_match)
    _check_free(row)
    with _unless_refused("kernel-not-runnable"):
        state.runtime.override(row, given.kernel)
    response.headers["ETag"] = etag(state, "results")
    return model_of(state, await row_or_404(state, identity))


@router.delete("/results/{identity}/override", operation_id="results_withdraw", status_code=204, dependencies=WRITES)
async def withdraw_override(state: Shared, identity: Identity, if_match: IfMatch = None) -> None:
    """Go back to the winner before an override; where none is known, forget it, so that it is measured anew."""
    row = await _row_to_change(state, identity, if_match)
    _check_free(row)
    with _unless_refused("no-override"):
        state.runtime.context.withdraw_override(row.op, row.params)


@router.delete("/results/{identity}", operation_id="results_forget", status_code=204, dependencies=WRITES)
async def forget_result(state: Shared, identity: Identity, if_match: IfMatch = None) -> None:
    """Forget a winner, in memory and file: it is measured again when its product is met."""
    row = await _row_to_change(state, identity, if_match)
    _check_free(row)
    with _unless_refused("pinned"):
        state.runtime.forget(row)


@router.delete("/results", operation_id="results_forget_all", status_code=204, responses=BUSY, dependencies=WRITES)
async def forget_all(state: Shared, confirm: Confirm, if_match: IfMatch = None) -> None:
    """Forget every winner, in memory and file; none while any is pinned."""
    del confirm
    pinned = [row.id for row in await state.runtime.winners.rows(Filter(pinned=True))]
    check_match(state, "results", if_match, required=True)
    if pinned:
        detail = f"pinned winners: {len(pinned)}; unpin them first, or forget the others one by one"
        raise Problem(409, "pinned", detail, pinned=pinned[:_MOST_NAMED])
    with _unless_refused("pinned"):
        await state.worker.run(state.runtime.context.forget_all)
