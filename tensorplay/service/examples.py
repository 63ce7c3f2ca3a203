"""An example for every document and every answer of the OpenAPI document, made from what its schemas say."""

from collections.abc import Mapping, Sequence
from typing import Any

from tensorplay.service.explanation_schemas import EXPLAINED, HISTOGRAM, NUMERICAL_CHECK

__all__ = ["add_examples", "example_of"]

_OP, _PARAMS = "GemmTunableOp_Float32", "taN_m512_n1024_k256_bias0_dev0"
_KERNEL = "lt_id7_tile12_stages3_splitk0_red0_swizzle0_custom0_inner1_cluster1"
_REQUEST = "5f0c9d1e2b3a48576d8e9fa0b1c2d3e4"
_ID, _TIME, _NAME = "0123456789abcdef", "2026-11-30T12:00:00+00:00", "tunableop_results0.csv"

_DOCUMENTS: Mapping[str, Any] = {
    "ProblemModel": {
        "type": "urn:tensorplay:problem:not-found",
        "title": "Not found",
        "status": 404,
        "detail": "there is no such winner; it may have been forgotten",
        "request_id": _REQUEST,
        "errors": [],
    },
    "ExplanationModel": EXPLAINED,
    "HistogramModel": HISTOGRAM,
    "NumericalCheckModel": NUMERICAL_CHECK,
    "Provenance": {"origin": "file", "file": _NAME, "line": 17},
    "JobSource": {"untuned": True},
    "JobRequest": {"kind": "tune", "source": {"untuned": True}, "budget": {"total_seconds": 60.0}},
    "SwitchPatch": {"tuning": False},
    "BudgetPatch": {"max_tuning_duration_ms": 30},
    "LoadRequest": {"overwrite": True},
    "SaveRequest": {"device": "0"},
}
_MEMBERS: Mapping[str, Any] = {
    "allowed": "an integer from 0 to 2147483647",
    "calls": 128,
    "command": "train.py",
    "created_at": _TIME,
    "current": _PARAMS,
    "default": 30,
    "device": "0",
    "devices": ["0"],
    "dropped": None,
    "dtype": "Float32",
    "etag": '"f1a2b-17c3d4e5f60718-9c4"',
    "file": _NAME,
    "first_choice_ms": 0.0421,
    "first_seen": _TIME,
    "gain": 1.35,
    "help": "Ceiling of the time that one candidate is timed for, in milliseconds.",
    "host": "node7",
    "id": _ID,
    "identity": _ID,
    "k": 256,
    "kernel": _KERNEL,
    "last_seen": _TIME,
    "m": 512,
    "median_ms": 0.0312,
    "modified": _TIME,
    "n": 1024,
    "name": _NAME,
    "next": None,
    "op": _OP,
    "origin": "measured here",
    "params": _PARAMS,
    "pid": 4242,
    "python": "3.11.7",
    "quartile_high_ms": 0.0314,
    "quartile_low_ms": 0.0311,
    "reason": "the library has no such algorithm any more",
    "request_id": _REQUEST,
    "result_id": _ID,
    "saved_ms": 0.0109,
    "revision": 7,
    "samples": 25,
    "screened_ms": 0.0313,
    "shape_id": "89abcdef01234567",
    "started_at": _TIME,
    "tflops": 8.6,
    "time": _TIME,
    "time_ms": 0.0312,
    "user": "somebody",
    "value": 30,
    "verdict": "winner",
    "version": "1.0.0",
    "winners": 128,
}
_TEXTS: Mapping[str, str] = {
    "text/csv": f"op,params,kernel,time_ms\r\n{_OP},{_PARAMS},{_KERNEL},0.0312\r\n",
    "text/plain": f"Validator,TP_TUNABLEOP_FORMAT,1\n{_OP},{_PARAMS},{_KERNEL},0.0312\n",
    "application/jsonl": f'{{"id": "{_ID}", "op": "{_OP}", "params": "{_PARAMS}", "kernel": "{_KERNEL}"}}\n',
    "text/event-stream": 'event: results\nid: 0123456789abcdef-7\ndata: {"revision": 7}\n\n',
}


def add_examples(document: dict[str, Any]) -> None:
    """Put an example into every schema, and into every body that is taken or given where all goes well."""
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        schema.setdefault("examples", [example_of({"$ref": f"#/components/schemas/{name}"}, schemas)])
    for methods in document["paths"].values():
        for operation in methods.values():
            given = [operation["requestBody"]] if "requestBody" in operation else []
            answers = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            for body in (*given, *answers):
                for kind, content in body.get("content", {}).items():
                    schema = content.get("schema") or {}
                    content.setdefault("example", _TEXTS[kind] if kind in _TEXTS else example_of(schema, schemas))


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], member: str = "") -> Any:
    """Return an example of a schema; `member` is what it is called where it stands, which says more than its type."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _DOCUMENTS[name] if name in _DOCUMENTS else example_of(schemas[name], schemas, member)
    if schema.get("examples"):
        return schema["examples"][0]
    for key in ("const", "enum"):
        if key in schema:
            choices = [schema[key]] if key == "const" else schema[key]
            return _MEMBERS[member] if _MEMBERS.get(member) in choices else choices[0]
    if "properties" in schema:
        return {name: example_of(each, schemas, name) for name, each in schema["properties"].items()}
    if "anyOf" in schema:
        if member in _MEMBERS:
            return _fitting(_MEMBERS[member], schema["anyOf"], schemas, member)
        return example_of(schema["anyOf"][0], schemas, member)
    if "type" not in schema:
        return _MEMBERS.get(member, {})
    return _fitting(_MEMBERS.get(member), [schema], schemas, member)


def _fitting(known: Any, choices: Sequence[Mapping[str, Any]], schemas: Mapping[str, Any], member: str) -> Any:
    """Return what is known for a member if its type is one of the choices, else an example of the first of them."""
    kinds = {
        "string": isinstance(known, str),
        "integer": type(known) is int,
        "number": type(known) in {int, float},
        "null": known is None and member in _MEMBERS,
    }
    if any(kinds.get(choice.get("type", ""), False) for choice in choices):
        return known
    schema = choices[0]
    kind = schema.get("type")
    if kind == "array":
        return [example_of(schema.get("items", {}), schemas, member)]
    if kind == "object":
        further = schema.get("additionalProperties")
        return {"name": example_of(further, schemas)} if isinstance(further, dict) else {}
    if kind is None:
        return example_of(schema, schemas, member)
    plain = {"string": "text", "integer": schema.get("minimum", 1), "number": 0.5, "boolean": True, "null": None}
    return plain[kind]
