"""The compose files and the configuration of Prometheus: valid, consistent, and open to this machine alone."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

Yaml = Callable[[str], Any]


def validate(tool: str, *paths: Path) -> "subprocess.CompletedProcess[str]":
    command = [tool, "--builtin-schema", "vendor.compose-spec", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_compose_files_fit_the_schema(tool: Callable[[str], str]) -> None:
    done = validate(tool("check-jsonschema"), *sorted((ROOT / "docker").glob("compose*.yaml")))
    assert done.returncode == 0, done.stdout


def test_a_compose_file_that_does_not_fit_is_found(tool: Callable[[str], str], tmp_path: Path) -> None:
    bad = tmp_path / "compose.yaml"
    bad.write_text("services: {worker: {image: x, portz: ['1:1']}}\n", encoding="utf-8")
    assert validate(tool("check-jsonschema"), bad).returncode == 1


def test_there_are_a_worker_its_recorded_files_and_prometheus(yaml_of: Yaml) -> None:
    assert list(yaml_of("compose.yaml")["services"]) == ["worker", "recorded", "prometheus"]


def test_only_this_machine_reaches_the_ports(yaml_of: Yaml) -> None:
    ports = [port for service in yaml_of("compose.yaml")["services"].values() for port in service["ports"]]
    assert len(ports) == 3
    assert len({port.rsplit(":", 1)[0] for port in ports}) == 3, "no port twice"
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_token_comes_from_outside_and_is_seen_by_no_inspection(yaml_of: Yaml) -> None:
    document = yaml_of("compose.yaml")
    assert document["secrets"] == {"tensorplay_token": {"environment": "TENSORPLAY_TOKEN"}}
    for name, service in document["services"].items():
        assert service["secrets"] == ["tensorplay_token"], name
        assert "TENSORPLAY_TOKEN" not in service.get("environment", {}), name
        assert not service.get("read_only"), f"{name}: compose cannot put such a secret into a read-only container"


def test_only_the_worker_may_write_results(yaml_of: Yaml) -> None:
    services = yaml_of("compose.yaml")["services"]
    assert services["worker"]["volumes"] == ["results:/results"]
    assert services["recorded"]["volumes"] == ["results:/results:ro"]


def test_nothing_gains_rights(yaml_of: Yaml) -> None:
    for service in yaml_of("compose.yaml")["services"].values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not {"privileged", "pid", "network_mode", "user"} & set(service)


@pytest.mark.parametrize("name", ["compose.yaml", "compose.cuda.yaml"])
def test_every_file_and_program_that_compose_names_is_in_the_images(
    name: str, yaml_of: Yaml, stages_of: Callable[[str], Any], value_of: Callable[[Any, str], str]
) -> None:
    services = yaml_of(name)["services"]
    built = services["worker"]["build"]["dockerfile"]
    assert (ROOT / built).is_file()
    command = json.loads(value_of(stages_of(Path(built).name)[-1], "CMD"))
    given = services["worker"]["command"]
    assert given == command
    assert services["recorded"]["command"][:2] == ["tensorplay", "serve"]
    assert services["recorded"]["image"] == services["worker"]["image"]


@pytest.mark.parametrize("name", ["worker", "recorded"])
def test_names_that_are_exported_are_passed_on_besides_a_services_own(name: str, yaml_of: Yaml) -> None:
    environ = yaml_of("compose.yaml")["services"][name]["environment"]
    assert environ["TENSORPLAY_HOSTS"] == name + ",${TENSORPLAY_HOSTS:-}"


def test_images_of_others_are_pinned_and_plainly_named(yaml_of: Yaml) -> None:
    image = yaml_of("compose.yaml")["services"]["prometheus"]["image"]
    assert re.fullmatch(r"prom/prometheus:v\d+\.\d+\.\d+", image)


def test_prometheus_asks_the_worker_under_a_name_that_it_answers_to(yaml_of: Yaml) -> None:
    services = yaml_of("compose.yaml")["services"]
    (job,) = yaml_of("prometheus.yml")["scrape_configs"]
    (target,) = (target for group in job["static_configs"] for target in group["targets"])
    host, _, port = target.partition(":")
    command = services[host]["command"]
    assert services[host]["environment"]["TENSORPLAY_HOSTS"].split(",")[0] == host
    assert command[command.index("--port") + 1] == port
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{services['prometheus']['secrets'][0]}"
    assert "./prometheus.yml:/etc/prometheus/prometheus.yml:ro" in services["prometheus"]["volumes"]
