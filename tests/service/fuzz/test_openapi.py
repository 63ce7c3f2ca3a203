"""Every operation of the document, called with what it allows and with what it does not: each answer is as declared."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from tensorplay.runtime.context import TuningContext
from tensorplay.service.identity import result_id
from tensorplay.service.problems import PROBLEM_TYPE

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
WITH_TOKEN = {"X-TensorPlay-Token": "right-and-too-long-to-be-guessed"}
Operation = Any
"""One of the document; schemathesis's own type has four parameters that say nothing here."""
OP = "GemmTunableOp_Float32"
MODES = tuple(GenerationMode)
SHORT, DEEP = 4, 200

Run = Callable[[int], str]


def checks_of(operation: Operation) -> list[Any]:
    """Bodies that are not allowed must be refused; of a query, what is not known, or given twice, is passed over."""
    return [*CHECKS, negative_data_rejection] if list(operation.body) else CHECKS


def fuzz(
    operation: Operation,
    caller: Any,
    headers: Mapping[str, str],
    before: Callable[[], dict[str, Any]],
    *,
    mode: GenerationMode,
    how: settings,
) -> None:
    """Call an operation with generated cases; `before` runs before each, and returns the path of what exists."""
    existing = before() if "{identity}" in operation.path else None

    @given(case=operation.as_strategy(mode, path_parameters=existing))
    @how
    def call(case: Any) -> None:
        before()
        case.validate_response(caller.call(case, headers), checks=checks_of(operation))

    with suppress(Unsatisfiable):
        # Raised where nothing can be given that is not allowed.
        call()


@pytest.fixture
def winner(context: TuningContext, run: Run) -> Callable[[], dict[str, Any]]:
    """Sees that there is a winner, and an untuned signature, whatever was changed; returns the winner's path."""

    def see() -> dict[str, Any]:
        context.change_setting("enabled", True)
        context.change_setting("tuning", False)
        run(3)
        context.change_setting("tuning", True)
        return {"identity": result_id(OP, run(2))}

    return see


@pytest.mark.parametrize("headers", [WITH_TOKEN, {}], ids=["token", "no token"])
@pytest.mark.parametrize("mode", MODES)
def test_every_operation_answers_as_declared(
    operations: list[Operation],
    caller: Any,
    winner: Callable[[], dict[str, Any]],
    mode: GenerationMode,
    headers: dict[str, str],
    subtests: Any,
) -> None:
    how = settings(
        max_examples=SHORT,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for operation in operations:
        with subtests.test(operation.label):
            fuzz(operation, caller, headers, winner, mode=mode, how=how)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("headers", [WITH_TOKEN, {}], ids=["token", "no token"])
@pytest.mark.parametrize("mode", MODES)
def test_every_operation_answers_as_declared_however_long_one_tries(
    operations: list[Operation],
    caller: Any,
    winner: Callable[[], dict[str, Any]],
    mode: GenerationMode,
    headers: dict[str, str],
    subtests: Any,
) -> None:
    how = settings(max_examples=DEEP, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    for operation in operations:
        with subtests.test(operation.label):
            fuzz(operation, caller, headers, winner, mode=mode, how=how)


def test_each_part_of_each_request_at_its_bounds_and_behind_them(
    operations: list[Operation], caller: Any, winner: Callable[[], dict[str, Any]], subtests: Any
) -> None:
    for operation in operations:
        schema: Any = operation.schema
        cases = schema.iter_coverage_cases(
            operation, generation_modes=list(MODES), generation_config=schema.config.generation
        )
        with subtests.test(operation.label):
            for case in cases:
                winner()
                # Any part of a rank can be asked for with GET, so that those that only change are not told apart.
                checks = checks_of(operation) + [unsupported_method] * ("/ranks/" not in operation.path)
                case.validate_response(caller.call(case, WITH_TOKEN), checks=checks)


def test_the_document_says_of_every_operation_how_it_fails(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for operation in methods.values():
            content = operation["responses"]["4XX"]["content"]
            assert content == {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemModel"}}}, path
