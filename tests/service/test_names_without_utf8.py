"""Names that the system allows and UTF-8 does not: of the program, of its user, and of its files."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tensorplay.gemm import parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.testing import ScriptedBackend

OP, PARAMS = "GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_dev0"
NAME = b"caf\xe9.csv".decode(errors="surrogateescape")
SHOWN, OWN = "caf\\udce9.csv", "caf\\udce90.csv"
PATHS = (
    "", "results", "untuned", "rejections", "jobs", "ranks", "settings", "events", "devices", "report", "metrics",
    "api/v1", "api/v1/settings", "api/v1/files", "api/v1/devices", "api/v1/runtime", "api/v1/ranks/own", "api/v1/log",
    "api/v1/rejections", "api/v1/rejections.csv", "api/v1/results", "api/v1/validators", "api/v1/switches",
    "api/v1/explain?op=GemmTunableOp_Float32&params=taN_m4_n3_k5_bias0_dev0",
)  # fmt: skip


@pytest.fixture
def context(tmp_path: Path, backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch) -> Iterator[TuningContext]:
    monkeypatch.setattr(sys, "argv", ["/tmp/pr\udce9.py"])  # noqa: S108 - a text, not a path
    monkeypatch.setenv("LOGNAME", "andr\udce9")
    # Of another build, so that it is refused.
    (tmp_path / NAME.replace(".csv", "0.csv")).write_text("Validator,SCRIPTED_VERSION,0\nnothing,here\n")
    environ = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FILENAME": NAME, "TP_TUNABLEOP_VERBOSE_FILENAME": NAME}
    made = TuningContext(environ=environ, directory=tmp_path, backends={"0": backend})
    made.resolve(parse_signature(OP, PARAMS), backend)
    yield made
    made.close()


def test_everything_answers(service: Service, context: TuningContext) -> None:
    context.listeners.tell("file", action="failed", path=f"/home/{NAME}", error=NAME)
    found: dict[str, str] = {}
    with httpx.Client(base_url=service.url, headers={"Accept": "text/html,*/*"}, timeout=20) as client:
        for path in PATHS:
            answer = client.get(path)
            assert answer.status_code == 200, path
            found[path] = answer.content.decode()
            page = client.get(path, headers={"Accept": "*/*"})
            assert page.status_code == 200, path
        identity = json.loads(found["api/v1/results"])["items"][0]["id"]
        assert client.get(f"results/{identity}").status_code == 200
        told = client.get(f"api/v1/results/{identity}").json()
    assert told["provenance"]["file"].startswith("caf\\udce90.")
    assert json.loads(found["api/v1/files"])["items"][0]["name"].startswith("caf\\udce90.")
    assert json.loads(found["api/v1/devices"])["items"][0]["files"][0].startswith("caf\\udce90.")
    root = json.loads(found["api/v1"])
    assert (root["command"], root["user"]) == ("pr\\udce9.py", "andr\\udce9")
    settings = {each["name"]: each["value"] for each in json.loads(found["api/v1/settings"])["items"]}
    assert settings["filename"] == SHOWN
    assert SHOWN in json.loads(found["api/v1/ranks/own"])["settings"]["filename"]
    assert "caf\\udce90." in found["devices"]
    assert SHOWN in found["events"]
    assert OWN in found["rejections"]
