"""The OpenAPI document: what FastAPI makes of the routes, with what it cannot know put right."""

from typing import Any

from fastapi import FastAPI

from tensorplay.service.examples import add_examples
from tensorplay.service.problems import PROBLEM_TYPE

__all__ = ["correct_document"]


def correct_document(app: FastAPI) -> None:
    """Let the document say under which media type problems are answered: FastAPI knows of one for each route."""
    made = app.openapi

    def corrected() -> dict[str, Any]:
        if app.openapi_schema is None:
            for path in made()["paths"].values():
                for operation in path.values():
                    _correct(operation)
            add_examples(made())
        return made()

    app.openapi = corrected  # type: ignore[method-assign] # what FastAPI's documentation tells to do


def _correct(operation: dict[str, Any]) -> None:
    for status, response in operation["responses"].items():
        content = response.get("content", {})
        if status.startswith("4") or (status.startswith("5") and content):
            schema = next(iter(content.values()), {"schema": {"$ref": "#/components/schemas/ProblemModel"}})
            response["content"] = {PROBLEM_TYPE: schema}
