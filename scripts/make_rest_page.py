#!/usr/bin/env python3
"""Write docs/rest_api.md from the OpenAPI document of the service.

With `--check`, write nothing, and end with 1 when the page is not up to date.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import create_app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rest_api.md"
START = "<!-- made by scripts/make_rest_page.py; do not edit by hand -->\n"
END = "<!-- end -->"
_METHODS = ("get", "put", "post", "patch", "delete")


def with_reference(text: str) -> str:
    """Return the page with the reference between its two marks; `ValueError` when it has none."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"{PAGE.name} has lost its marks, {START.strip()} and {END}")
    return f"{before}{start}\n{reference()}\n{end}{after}"


def reference() -> str:
    """Return the reference as Markdown."""
    context = TuningContext(environ={})
    document = create_app(context).openapi()
    context.close()
    lines: list[str] = []
    for tag in document["tags"]:
        lines += [f"## {tag['name'].capitalize()}", "", tag["description"], ""]
        for path, methods in document["paths"].items():
            for method in _METHODS:
                if tag["name"] in methods.get(method, {}).get("tags", ()):
                    lines += [*_operation(method, path, methods[method]), ""]
    lines += ["## Documents", "", *_schemas(document["components"]["schemas"])]
    return "\n".join(lines).rstrip("\n") + "\n"


def main() -> int:
    """Write or check; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail when the page is not up to date")
    is_check = parser.parse_args().check
    before = PAGE.read_text(encoding="utf-8")
    after = with_reference(before)
    if is_check and after != before:
        sys.stderr.write("docs/rest_api.md is not up to date: run .venv/bin/python scripts/make_rest_page.py\n")
        return 1
    if not is_check:
        PAGE.write_text(after, encoding="utf-8")
    return 0


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method.upper()} {path}`"
    yield ""
    yield _plain(operation["description"])
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        yield ""
        yield f"Takes {_type(body)}."
    answers = [_answer(code, answer) for code, answer in operation["responses"].items() if code.startswith("2")]
    yield ""
    yield f"Answers {', '.join(answers)}."
    parameters = operation.get("parameters", ())
    headers = [f"`{each['name']}`" for each in parameters if each["in"] == "header"]
    if headers:
        yield f"Header: {', '.join(headers)}."
    queries = [each for each in parameters if each["in"] == "query"]
    if queries:
        yield ""
        yield from _table("Parameter", {each["name"]: each["schema"] | each for each in queries}, ())


def _answer(code: str, answer: dict[str, Any]) -> str:
    for kind, content in answer.get("content", {}).items():
        schema = content.get("schema") or content.get("itemSchema")
        if kind == "application/json" and schema:
            return f"{code} with {_type(schema)}"
        return f"{code} with `{kind}`"
    return code


def _schemas(schemas: dict[str, Any]) -> Iterator[str]:
    for name, schema in sorted(schemas.items()):
        if "properties" not in schema or "ValidationError" in name or name.startswith("Listed"):
            continue
        yield f"### {_heading(name)}"
        yield ""
        if schema.get("description"):
            yield _plain(schema["description"].strip().splitlines()[0])
            yield ""
        yield from _table("Member", schema["properties"], schema.get("required", ()))
        yield ""


def _table(head: str, members: dict[str, Any], required: Sequence[str]) -> Iterator[str]:
    yield f"| {head} | Type | What it is |"
    yield "| --- | --- | --- |"
    for name, about in members.items():
        optional = "" if name in required or head == "Parameter" else "optional "
        says = [_plain(about.get("description", "")), _example(about)]
        yield f"| `{name}` | {optional}{_type(about.get('schema', about))} | {' '.join(filter(None, says))} |"


def _type(schema: dict[str, Any]) -> str:
    """Return what a schema allows, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name.startswith("Listed_"):
            item = name.removeprefix("Listed_").strip("_")
            return f"a list of {_link(item)}"
        return _link(name)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"array of {_type(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])} by name"
    ends = (("minimum", "from"), ("maximum", "to"))
    bounds = [f"{word} {_number(schema[key])}" for key, word in ends if key in schema]
    return " ".join([kind, *bounds])


def _number(value: float) -> str:
    # JSON schemas give whole bounds as floats, which would not show all digits.
    return f"{value:.0f}" if float(value).is_integer() else f"{value:g}"


def _link(name: str) -> str:
    heading = _heading(name)
    return f"[{heading}](#{heading.lower()})"


def _heading(name: str) -> str:
    return name.removesuffix("Model")


def _example(schema: dict[str, Any]) -> str:
    examples = schema.get("examples")
    return f"Such as `{examples[0]}`" if examples and isinstance(examples[0], str) else ""


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, in one cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.exit(main())
