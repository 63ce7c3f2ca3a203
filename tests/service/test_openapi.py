"""The OpenAPI document: an example of everything, problems everywhere, and nothing taken back that was promised.

`TENSORPLAY_SNAPSHOT=1` writes what is promised anew; look at the difference before it is committed.
"""

import json
import os
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import create_app
from tensorplay.service.problems import PROBLEM_TYPE

SNAPSHOT = Path(__file__).parent / "openapi.snapshot.json"
Document = dict[str, Any]
_WORDS = frozenset({"description", "example", "examples", "summary", "title"})


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    context = TuningContext(environ={}, directory=tmp_path_factory.mktemp("openapi"))
    made: Document = create_app(context).openapi()
    context.close()
    return made


def operations(document: Document) -> Iterator[tuple[str, Document]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def breaking_changes(before: Document, after: Document) -> list[str]:
    """Return what a client that was written for one document would stumble over in another."""
    found = []
    now = dict(operations(after))
    for name, old in operations(before):
        if name not in now:
            found.append(f"{name} is gone")
            continue
        new = now[name]
        if old["operationId"] != new["operationId"]:
            found.append(f"{name} is called {new['operationId']}")
        found += [f"{name}: {each}" for each in _parameter_changes(old, new)]
        if new.get("requestBody", {}).get("required") and not old.get("requestBody", {}).get("required"):
            found.append(f"{name} needs a body")
        gone = {status for status in old["responses"] if status.startswith("2")} - set(new["responses"])
        found += [f"{name} does not answer {status}" for status in sorted(gone)]
        found += [
            f"{name} does not answer {status} as {kind}"
            for status, answer in old["responses"].items()
            for kind in answer.get("content", {})
            if status in new["responses"] and kind not in new["responses"][status].get("content", {})
        ]
    schemas = after["components"]["schemas"]
    for name, old in before["components"]["schemas"].items():
        found += [f"{name}: {each}" for each in _schema_changes(old, schemas.get(name))]
    return found


def _parameter_changes(old: Document, new: Document) -> Iterator[str]:
    before, after = ({(each["in"], each["name"]): each for each in one.get("parameters", ())} for one in (old, new))
    for key in before.keys() - after.keys():
        yield f"{key[1]} is not taken any more"
    for key, parameter in after.items():
        if parameter.get("required") and not before.get(key, {}).get("required"):
            yield f"{key[1]} is needed now"


def _schema_changes(old: Document, new: Document | None) -> Iterator[str]:
    if new is None:
        yield "is gone"
        return
    before, after = old.get("properties", {}), new.get("properties", {})
    for name in before.keys() - after.keys():
        yield f"{name} is gone"
    for name in set(new.get("required", ())) - set(old.get("required", ())):
        # What is answered may always be there from now on; what is sent was not.
        if new.get("additionalProperties") is False:
            yield f"{name} is needed now"
    for name in set(old.get("required", ())) - set(new.get("required", ())):
        if new.get("additionalProperties") is not False:
            yield f"{name} may be missing now"
    for name in before.keys() & after.keys():
        if _types(before[name]) != _types(after[name]):
            yield f"{name} is {_types(after[name])} now"


def _types(schema: Document) -> list[str]:
    parts = schema.get("anyOf", [schema])
    return sorted(str(each.get("$ref") or each.get("type") or "anything") for each in parts)


def _promised(part: Any) -> Any:
    """Return a document without what is said for people alone."""
    if isinstance(part, dict):
        return {name: _promised(each) for name, each in part.items() if name not in _WORDS or isinstance(each, dict)}
    return [_promised(each) for each in part] if isinstance(part, list) else part


def test_nothing_that_was_promised_is_taken_back(document: Document) -> None:
    if os.environ.get("TENSORPLAY_SNAPSHOT"):
        SNAPSHOT.write_text(json.dumps(_promised(document), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    promised = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    assert breaking_changes(promised, document) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("paths", "/api/v1/results"), None),
        (("paths", "/api/v1/results", "get", "operationId"), "other"),
        (("paths", "/api/v1/results", "get", "parameters"), []),
        (("paths", "/api/v1/results", "get", "responses", "200"), None),
        (("paths", "/api/v1/results.csv", "get", "responses", "200", "content"), {}),
        (("components", "schemas", "ResultModel"), None),
        (("components", "schemas", "ResultModel", "properties", "kernel"), None),
        (("components", "schemas", "ResultModel", "properties", "m"), {"type": "string"}),
        (("components", "schemas", "ResultModel", "required"), []),
        (("components", "schemas", "JobSource", "required"), ["untuned"]),
    ],
)
def test_a_promise_that_is_broken_is_noticed(document: Document, path: tuple[str, ...], value: Any) -> None:
    changed = deepcopy(document)
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    assert breaking_changes(document, changed)
    assert breaking_changes(document, deepcopy(document)) == []


def test_a_parameter_that_is_needed_from_now_on_is_noticed(document: Document) -> None:
    changed = deepcopy(document)
    changed["paths"]["/api/v1/results"]["get"]["parameters"][0]["required"] = True
    assert breaking_changes(document, changed)


def test_every_document_has_an_example_that_is_one(document: Document) -> None:
    for name, schema in document["components"]["schemas"].items():
        (example,) = schema["examples"]
        whole = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema_rs.validate(whole, example)


def test_every_body_that_is_taken_or_given_has_an_example(document: Document) -> None:
    for name, operation in operations(document):
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        bodies += [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        for body in bodies:
            for kind, content in body.get("content", {}).items():
                assert "example" in content, name
                if kind == "application/json":
                    whole = {**content.get("schema", {}), "components": document["components"]}
                    jsonschema_rs.validate(whole, content["example"])


def test_whatever_goes_wrong_is_told_as_a_problem(document: Document) -> None:
    for name, operation in operations(document):
        assert PROBLEM_TYPE in operation["responses"]["4XX"]["content"], name
        for status, answer in operation["responses"].items():
            if status.startswith("5") and answer.get("content"):
                assert list(answer["content"]) == [PROBLEM_TYPE], name


def test_names_of_operations_are_made_of_their_tag_and_stay(document: Document) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(names) == len(set(names))
    assert {tag["name"] for tag in document["tags"]} >= {
        tag for _, operation in operations(document) for tag in operation["tags"]
    }


def test_every_query_parameter_says_what_it_is(document: Document) -> None:
    silent = [
        f"{name} ?{parameter['name']}"
        for name, operation in operations(document)
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and not parameter.get("description")
    ]
    assert silent == []
