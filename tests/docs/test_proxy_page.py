"""What the page on proxies shows: nginx with its own lines where there is one, and Kubernetes' objects taken apart."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from ruamel.yaml import YAML

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start

Docs = Callable[[str], str]

NGINX = os.environ.get("TENSORPLAY_NGINX") or shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
_AROUND = """
daemon off; pid {folder}/pid; error_log stderr;
events {{}}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; {location} }}
}}
"""


class Proxied(NamedTuple):
    """A service, and where a proxy shows it."""

    service: Service
    url: str


def block(page: str, language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.fixture
def proxied(tmp_path: Path, docs: Docs) -> Iterator[Proxied]:
    """Runs nginx with the lines of the page before a service that is known as ml.example."""
    if NGINX is None:
        pytest.skip("no nginx here: the example of docs/proxy.md is NOT run (apt-get install nginx)")
    context = TuningContext(environ={}, directory=tmp_path)
    service = start(context=context, hosts=frozenset({"ml.example"}))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    location = block(docs("proxy.md"), "nginx").replace("http://127.0.0.1:8787/", service.url)
    (tmp_path / "nginx.conf").write_text(
        _AROUND.format(folder=tmp_path, port=port, location=location), encoding="utf-8"
    )
    process = subprocess.Popen([NGINX, "-p", tmp_path, "-c", tmp_path / "nginx.conf"])
    try:
        for _ in range(100):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None
            time.sleep(0.05)
        yield Proxied(service, f"http://127.0.0.1:{port}/tensorplay/")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
        service.stop()
        context.close()


def test_nginx_shows_pages_changes_and_events_under_a_prefix(proxied: Proxied) -> None:
    # As on a port that is not the usual one of TLS, which a proxy easily loses.
    outside = {"Host": "ml.example:8443", "Origin": "https://ml.example:8443"}
    assert httpx.get(proxied.url + "results", headers=outside).status_code == 200
    assert httpx.get(proxied.url, headers={"Host": "evil.example"}).status_code == 403
    token = {"Authorization": f"Bearer {proxied.service.token}"}
    changed = httpx.patch(proxied.url + "api/v1/switches", json={"tuning": False}, headers=outside | token)
    assert changed.status_code == 200
    code = proxied.service.login_url.rpartition("/")[2]
    assert "Secure" in httpx.get(proxied.url + code, headers=outside).headers["set-cookie"]
    with httpx.stream("GET", proxied.url + "api/v1/events", headers=outside) as stream:
        assert any(line == "event: hello" for line in stream.iter_lines())


@pytest.fixture
def objects(docs: Docs) -> dict[str, Any]:
    """Return the objects of Kubernetes by their kind."""
    return {each["kind"]: each for each in YAML(typ="safe").load_all(block(docs("proxy.md"), "yaml"))}


def test_the_objects_of_kubernetes_fit_each_other(objects: dict[str, Any]) -> None:
    pod, service, ingress = objects["Pod"], objects["Service"], objects["Ingress"]
    (container,) = pod["spec"]["containers"]
    (rule,) = ingress["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    args = container["args"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    ports = {container["ports"][0]["containerPort"], service["spec"]["ports"][0]["port"]}
    ports |= {path["backend"]["service"]["port"]["number"], int(args[args.index("--port") + 1])}
    ports |= {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")}
    assert ports == {8787}
    assert args[args.index("--name") + 1] == rule["host"]
    assert container["env"][0]["name"] == "TENSORPLAY_TOKEN"
    assert "value" not in container["env"][0]


def test_the_pod_runs_as_the_image_wants_it(objects: dict[str, Any], root: Path) -> None:
    spec = objects["Pod"]["spec"]
    dockerfile = (root / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert f"USER {spec['securityContext']['fsGroup']}:" in dockerfile
    assert f"VOLUME {spec['containers'][0]['volumeMounts'][0]['mountPath']}" in dockerfile
    command = re.findall(r"[^\s\",\[\]]+", dockerfile.rpartition("CMD ")[2])
    assert spec["containers"][0]["args"][: len(command)] == command
