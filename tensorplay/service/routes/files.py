"""Files by their names: listed, given, loaded and saved. No path is taken from a client, and none is shown."""

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Path, Response

from tensorplay.database.record import Validator
from tensorplay.database.validators import compare
from tensorplay.service.export import attachment
from tensorplay.service.file_changes import Conditions, loaded, saved
from tensorplay.service.file_names import FILE_PATTERN, RESULTS_PATTERN
from tensorplay.service.file_schemas import FileModel, LoadReport, LoadRequest, SaveReport, SaveRequest
from tensorplay.service.met_devices import validators_of
from tensorplay.service.problem_schemas import ProblemModel
from tensorplay.service.problems import Problem
from tensorplay.service.result_files import FoundFile
from tensorplay.service.schemas import Listed
from tensorplay.service.shown_text import encodable
from tensorplay.service.state import WRITES, IfMatch, IfNoneMatch, Shared, State, listed
from tensorplay.service.worker import BUSY

__all__ = ["FileName", "files_of", "router"]

_Name = Annotated[str, Path(pattern=FILE_PATTERN, examples=["tunableop_results0.csv"])]
FileName = Annotated[str, Path(pattern=RESULTS_PATTERN, examples=["tunableop_results0.csv"])]
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "What the file holds."},
    304: {"description": "It has not changed."},
    **BUSY,
}
_WRITTEN: dict[int | str, dict[str, Any]] = {
    201: {"model": SaveReport, "description": "The file is new."},
    **BUSY,
    507: {"model": ProblemModel, "description": "The disk is full."},
}
# What a browser would make of the content, whatever it is.
_SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"

router = APIRouter(tags=["files"])


async def files_of(state: State) -> list[FileModel]:
    """Return the files by name; their folders are nobody's business."""
    found = await state.worker.read(state.files.listed)
    pairs = validators_of(await state.runtime.met.listed()).values()
    ours = [[Validator(*pair) for pair in each] for each in pairs]
    return [_model_of(each, ours) for each in found]


def _model_of(found: FoundFile, ours: list[list[Validator]]) -> FileModel:
    theirs = [Validator(*pair) for pair in found.validators]
    modified = None
    if found.modified_ns is not None:
        # A file may say that it is of a year that has five digits.
        with suppress(ValueError, OverflowError, OSError):
            modified = datetime.fromtimestamp(found.modified_ns / 1e9, UTC).isoformat(timespec="seconds")
    return FileModel(
        name=encodable(found.name),
        kind=found.kind,  # type: ignore[arg-type] # one of them by construction
        device=found.device,
        size=found.size,
        modified=modified,
        etag=found.etag,
        validators=dict(theirs),
        matches=any(not compare(each, theirs) for each in ours) if theirs else None,
    )


@router.get("/files", operation_id="files_list", response_model=Listed[FileModel], responses=BUSY)
async def list_files(state: Shared) -> Any:
    """Return the files that winners go to, and others of their kind in the same folder."""
    return listed(await files_of(state), state.runtime.revision("files"))


@router.post("/files/save", operation_id="files_save", responses=BUSY, dependencies=WRITES)
async def save_files(state: Shared) -> dict[str, bool]:
    """Rewrite every results file with the winners in memory, merged with what others wrote."""
    return {"written": await state.worker.run(state.runtime.context.write_file)}


@router.get("/files/save", include_in_schema=False)
async def refuse_reading_save() -> None:
    """Say that this is no name of a file."""
    raise Problem(405, "method-not-allowed", "this is not read, but sent", headers={"Allow": "POST"})


@router.get("/files/{name}", operation_id="files_read", response_class=Response, responses=_TEXT)
async def read_file(state: Shared, name: _Name, if_none_match: IfNoneMatch = None) -> Response:
    """Return what a file holds, as plain text to be saved, and never to be shown by a browser."""
    found, data = await state.worker.read(partial(state.files.read, name))
    headers = {"ETag": found.etag or "", "Content-Security-Policy": _SANDBOX}
    if if_none_match is not None and if_none_match == found.etag:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type="text/plain; charset=utf-8", headers=headers | attachment(found.name))


@router.post(
    "/files/{name}/load", operation_id="files_load", response_model=LoadReport, responses=BUSY, dependencies=WRITES
)
async def load_file(state: Shared, name: FileName, request: Annotated[LoadRequest | None, Body()] = None) -> LoadReport:
    """Merge the winners of a results file into memory; one of another build is refused, with all that differs."""
    wanted = request or LoadRequest()
    return await state.worker.run(partial(loaded, state.files, state.runtime.context, name, wanted))


@router.post(
    "/files/{name}/save", operation_id="files_write", response_model=SaveReport, responses=_WRITTEN, dependencies=WRITES
)
async def save_file(
    state: Shared,
    name: FileName,
    response: Response,
    request: Annotated[SaveRequest | None, Body()] = None,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    key: Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)] = None,
) -> SaveReport:
    """Write the winners in memory to a file, merged with what it holds.

    A new file needs `If-None-Match: *`, one that is there `If-Match` with its etag.
    """
    wanted, conditions = request or SaveRequest(), Conditions((if_match, if_none_match))
    own_key = f"save {key}" if key else None
    answer = state.keys.begin(own_key, (name, wanted, conditions))
    if answer is None:
        try:
            answer = await state.worker.run(
                partial(saved, state.files, state.runtime.context, name, wanted, conditions)
            )
        finally:
            state.keys.end(own_key, answer)
    report: SaveReport
    report, is_new = answer
    response.status_code = 201 if is_new else 200
    response.headers["ETag"] = report.etag
    return report
