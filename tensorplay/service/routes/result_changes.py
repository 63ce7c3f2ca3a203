"""Winners, changed: pinned, overridden, gone back from, forgotten."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter, Response

from tensorplay.errors import TensorPlayError
from tensorplay.service.listing import Filter
from tensorplay.service.problems import Problem
from tensorplay.service.routes.results import Identity, model_of, no_winner, row_or_404
from tensorplay.service.row import Row
from tensorplay.service.schemas import Override, ResultModel
from tensorplay.service.state import WRITES, Confirm, IfMatch, Shared, State, check_match, etag
from tensorplay.service.worker import BUSY

__all__ = ["router"]

_MOST_NAMED = 100

router = APIRouter(tags=["results"])


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of one winner: its `code` is that of a refusal of the runtime; some take what is pinned, too."""

    code: str
    make: Callable[[Row], object]
    takes_pinned: bool = False

    def made(self, state: State, identity: str, if_match: str | None) -> str:
        """Make it, and return the entity tag of what it left; it waits for the locks of files.

        What was seen when it was asked for may have changed while others were waited for, so it is looked at here.
        """
        row = state.runtime.winners.now().get(identity)
        if row is None:
            raise no_winner()
        check_match(state, "results", if_match, required=True)
        if not self.takes_pinned:
            _check_free(row)
        with _unless_refused(self.code):
            self.make(row)
        return etag(state, "results")


async def _changed(state: State, identity: str, if_match: str | None, change: _Change) -> str:
    # What is refused at once waits for nobody.
    await row_or_404(state, identity)
    check_match(state, "results", if_match, required=True)
    return await state.worker.run(partial(change.made, state, identity, if_match))


def _check_free(row: Row) -> None:
    if row.pinned:
        raise Problem(409, "pinned", "this winner is pinned; unpin it first")


@contextmanager
def _unless_refused(code: str) -> Iterator[None]:
    try:
        yield
    except TensorPlayError as error:
        raise Problem(409, code, str(error)) from None


@router.put(
    "/results/{identity}/pin",
    operation_id="results_pin",
    response_model=ResultModel,
    responses=BUSY,
    dependencies=WRITES,
)
async def pin_result(state: Shared, identity: Identity, response: Response, if_match: IfMatch = None) -> Any:
    """Keep a winner as it is, until it is unpinned or the process ends: nothing measured or loaded replaces it."""
    context = state.runtime.context

    def pin(row: Row) -> None:
        if not row.pinned and not context.pin_winner(row.op, row.params):
            raise no_winner()

    response.headers["ETag"] = await _changed(state, identity, if_match, _Change("not-pinned", pin, takes_pinned=True))
    return await model_of(state, await row_or_404(state, identity))


@router.delete(
    "/results/{identity}/pin", operation_id="results_unpin", status_code=204, responses=BUSY, dependencies=WRITES
)
async def unpin_result(state: Shared, identity: Identity, if_match: IfMatch = None) -> None:
    """Let a winner be changed again."""
    context = state.runtime.context

    def unpin(row: Row) -> None:
        if row.pinned:
            context.unpin_winner(row.op, row.params)

    await _changed(state, identity, if_match, _Change("not-unpinned", unpin, takes_pinned=True))


@router.put(
    "/results/{identity}/override",
    operation_id="results_override",
    response_model=ResultModel,
    responses=BUSY,
    dependencies=WRITES,
)
async def override_result(
    state: Shared, identity: Identity, given: Override, response: Response, if_match: IfMatch = None
) -> Any:
    """Record a kernel of the client's choice for a signature, after it was built for it."""
    context = state.runtime.context
    change = _Change("kernel-not-runnable", lambda row: context.override(row.op, row.params, given.kernel))
    response.headers["ETag"] = await _changed(state, identity, if_match, change)
    return await model_of(state, await row_or_404(state, identity))


@router.delete(
    "/results/{identity}/override",
    operation_id="results_withdraw",
    status_code=204,
    responses=BUSY,
    dependencies=WRITES,
)
async def withdraw_override(state: Shared, identity: Identity, if_match: IfMatch = None) -> None:
    """Go back to the winner before an override; where none is known, forget it, so that it is measured anew."""
    context = state.runtime.context
    change = _Change("no-override", lambda row: context.withdraw_override(row.op, row.params))
    await _changed(state, identity, if_match, change)


@router.delete(
    "/results/{identity}", operation_id="results_forget", status_code=204, responses=BUSY, dependencies=WRITES
)
async def forget_result(state: Shared, identity: Identity, if_match: IfMatch = None) -> None:
    """Forget a winner, in memory and file: it is measured again when its product is met."""
    context = state.runtime.context
    await _changed(state, identity, if_match, _Change("pinned", lambda row: context.forget(row.op, row.params)))


@router.delete("/results", operation_id="results_forget_all", status_code=204, responses=BUSY, dependencies=WRITES)
async def forget_all(state: Shared, confirm: Confirm, if_match: IfMatch = None) -> None:
    """Forget every winner, in memory and file; none while any is pinned."""
    del confirm
    check_match(state, "results", if_match, required=True)
    await state.worker.run(partial(_forget_all, state, if_match))


def _forget_all(state: State, if_match: str | None) -> None:
    pinned = [row.id for row in state.runtime.winners.now().rows(Filter(pinned=True))]
    check_match(state, "results", if_match, required=True)
    if pinned:
        detail = f"pinned winners: {len(pinned)}; unpin them first, or forget the others one by one"
        raise Problem(409, "pinned", detail, pinned=pinned[:_MOST_NAMED])
    with _unless_refused("pinned"):
        state.runtime.context.forget_all()
