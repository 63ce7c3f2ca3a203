"""What the images run, run here: the entry, the health check and Prometheus's request are those of the files."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tensorplay.database.csv_text import parse_results

ROOT = Path(__file__).parents[2]
TOKEN = "a token of the test"  # noqa: S105 - of this test alone
QUICK = {"TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "1"}

Run = Callable[..., Any]
Yaml = Callable[[str], Any]


def names_of(service: Any, exported: str = "") -> dict[str, str]:
    """Return the names that compose gives a service, when some are exported."""
    return {"TENSORPLAY_HOSTS": service["environment"]["TENSORPLAY_HOSTS"].replace("${TENSORPLAY_HOSTS:-}", exported)}


@pytest.fixture
def token_file(tmp_path: Path) -> dict[str, str]:
    """Return the environment that names a file with the token, as a secret of compose is given."""
    path = tmp_path / "secret"
    path.write_text(f"{TOKEN}\n", encoding="utf-8")
    return {"TENSORPLAY_TOKEN_FILE": str(path)}


def test_the_worker_of_compose_is_healthy_is_scraped_records_and_ends_when_it_is_told(
    run_image: Run, yaml_of: Yaml, tmp_path: Path, token_file: dict[str, str]
) -> None:
    services, (job,) = yaml_of("compose.yaml")["services"], yaml_of("prometheus.yml")["scrape_configs"]
    command = services["worker"]["command"]
    environ = token_file | QUICK | names_of(services["worker"])
    with run_image("Dockerfile", tmp_path, command=command, environ=environ) as worker:
        worker.wait_until_healthy()
        url = f"http://127.0.0.1:{worker.port}{job['metrics_path']}"
        host = {"Host": job["static_configs"][0]["targets"][0]}
        assert httpx.get(url, headers=host).status_code == 401
        answer = httpx.get(url, headers=host | {"Authorization": f"{job['authorization']['type']} {TOKEN}"})
        assert answer.status_code == 200
        assert worker.process.stdout
        shown = worker.process.stdout.readline()
        with httpx.Client() as browser:
            assert browser.get(shown.rpartition(" ")[2].strip()).status_code == 200
            assert browser.get(f"http://127.0.0.1:{worker.port}/results").status_code == 200
        families = {family.name: family for family in text_string_to_metric_families(answer.text)}
        assert families["tensorplay_enabled"].samples[0].value == 1
        measured = worker.results / "tunableop_resultscpu.csv"
        while not measured.is_file() or not parse_results(measured.read_text(encoding="utf-8")).entries:
            assert worker.process.poll() is None
            time.sleep(0.1)
        worker.process.send_signal(signal.SIGTERM)
        output, errors = worker.process.communicate(timeout=30)
    assert (worker.process.returncode, output, errors) == (0, "", "")
    assert f" http://127.0.0.1:{worker.port}/login?code=" in shown
    assert TOKEN not in shown


def test_recorded_files_are_served_from_a_volume(
    run_image: Run, yaml_of: Yaml, tmp_path: Path, token_file: dict[str, str]
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "tunableop_resultscpu.csv").write_text(
        "Validator,TP_TUNABLEOP_FORMAT,1\nGemmTunableOp_Float32,taN_m4_n4_k4_bias0_devcpu,host_numpy,0.001\n",
        encoding="utf-8",
    )
    recorded = yaml_of("compose.yaml")["services"]["recorded"]
    environ = token_file | names_of(recorded, "ml.example")
    with run_image("Dockerfile", tmp_path, command=recorded["command"], environ=environ) as served:
        served.wait_until_healthy()
        url, headers = f"http://127.0.0.1:{served.port}/api/v1/results", {"Authorization": f"Bearer {TOKEN}"}
        for host in ("recorded:8787", "ml.example"):
            answer = httpx.get(url, headers=headers | {"Host": host})
            assert (answer.status_code, answer.json().get("total")) == (200, 1), (host, answer.text)
        assert httpx.get(url, headers=headers | {"Host": "worker:8787"}).status_code == 403
        served.process.send_signal(signal.SIGTERM)
        served.process.communicate(timeout=30)
    assert served.process.returncode == 0


def test_without_a_token_a_worker_does_not_start_and_says_so(run_image: Run, dockerfile: str, tmp_path: Path) -> None:
    with run_image(dockerfile, tmp_path) as worker, socket.socket() as held:
        # Else a service of a test beside this one may come to listen there.
        held.bind(("127.0.0.1", worker.port))
        output, errors = worker.process.communicate(timeout=50)
        assert worker.check_health() != 0
    assert worker.process.returncode == 1
    assert (output, errors.count("\n")) == ("", 1)
    assert "TENSORPLAY_TOKEN" in errors


def test_the_worker_answers_to_the_names_of_the_environment_unless_it_is_given_others(
    run_image: Run, tmp_path: Path, token_file: dict[str, str]
) -> None:
    environ = token_file | QUICK | {"TENSORPLAY_HOSTS": "ml.example, theirs.example"}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for extra, allowed in ([], [200, 200, 403]), (["--name", "ours.example"], [403, 403, 200]):
        with run_image("Dockerfile", tmp_path, *extra, environ=environ) as worker:
            worker.wait_until_healthy()
            url = f"http://127.0.0.1:{worker.port}/metrics"
            hosts = ("ml.example", "theirs.example:80", "ours.example")
            assert [httpx.get(url, headers=headers | {"Host": host}).status_code for host in hosts] == allowed


def test_a_name_that_is_none_is_told_by_its_variable(
    run_image: Run, tmp_path: Path, token_file: dict[str, str]
) -> None:
    with run_image("Dockerfile", tmp_path, environ=token_file | {"TENSORPLAY_HOSTS": "a:80"}) as worker:
        output, errors = worker.process.communicate(timeout=50)
    assert (worker.process.returncode, output, errors.count("\n")) == (1, "", 1)
    assert errors.startswith("TENSORPLAY_HOSTS: 'a:80' is no name")
    assert "TOKEN" not in errors


def test_a_secret_that_cannot_be_read_is_no_empty_token(run_image: Run, tmp_path: Path) -> None:
    missing = {"TENSORPLAY_TOKEN_FILE": str(tmp_path / "none")}
    with run_image("Dockerfile", tmp_path, environ=missing) as worker:
        _, errors = worker.process.communicate(timeout=50)
    assert worker.process.returncode != 0
    assert "none" in errors


def test_the_image_runs_a_program_of_ones_own(run_image: Run, tmp_path: Path) -> None:
    with run_image("Dockerfile", tmp_path, command=["python", "-c", "import tensorplay; print('mine')"]) as own:
        output, errors = own.process.communicate(timeout=50)
    assert (output, errors) == ("mine\n", "")


def test_what_is_installed_in_a_layer_of_its_own_is_what_the_package_asks_for(tmp_path: Path) -> None:
    program = ROOT / "docker" / "list_requirements.py"
    listed = subprocess.run(
        [sys.executable, program, "web", "half"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = listed.stdout.splitlines()
    assert {"numpy", "rich", "fastapi", "uvicorn", "ml_dtypes"} <= {line.partition(">")[0] for line in lines}
    wrong = subprocess.run([sys.executable, program, "wep"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert wrong.returncode == 1
    assert "no extra wep" in wrong.stderr
