"""The Dockerfiles: what a linter says, and what an image must and must not hold."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]

Stage = list[tuple[str, str]]
Stages = Callable[[str], list[Stage]]
Value = Callable[[Stage, str], str]


def lint(tool: str, path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([tool, "--no-color", str(path)], capture_output=True, text=True, check=False)


def test_the_linter_finds_nothing(dockerfile: str, tool: Callable[[str], str]) -> None:
    found = lint(tool("hadolint"), ROOT / "docker" / dockerfile)
    assert (found.returncode, found.stdout) == (0, "")


def test_the_linter_would_find_something(tool: Callable[[str], str], tmp_path: Path) -> None:
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM python\nRUN cd /tmp && apt-get install -y curl\nUSER root\nCMD python\n", encoding="utf-8")
    found = lint(tool("hadolint"), bad)
    assert found.returncode == 1
    assert {"DL3006", "DL3008", "DL3025"} <= set(re.findall(r"DL\d+", found.stdout))


def test_every_base_image_is_pinned_to_a_full_version(dockerfile: str, stages_of: Stages, value_of: Value) -> None:
    bases = [value_of(stage, "FROM").partition(" ")[0] for stage in stages_of(dockerfile)]
    version = re.fullmatch(r"python:(3\.\d+\.\d+)-slim-(\w+)", bases[-1])
    assert version is not None
    # What was compiled in a whole image runs in a slim one of the same Python and the same system.
    assert set(bases) == {bases[-1], f"python:{version[1]}-{version[2]}"}


def test_an_image_is_not_made_without_the_extensions(dockerfile: str, stages_of: Stages, value_of: Value) -> None:
    (stage,) = (each for each in stages_of(dockerfile) if value_of(each, "FROM").endswith(" AS package"))
    assert "slim" not in value_of(stage, "FROM"), "a slim image has no compiler"
    assert value_of(stage, "RUN").startswith("TENSORPLAY_EXTENSIONS=required python -m pip wheel ")
    assert any("setup.py" in value.split() for name, value in stage if name == "COPY")


def test_it_does_not_run_as_root(dockerfile: str, stages_of: Stages, value_of: Value) -> None:
    last = stages_of(dockerfile)[-1]
    user = value_of(last, "USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user), "a number, so that Kubernetes can check runAsNonRoot"
    assert f"--uid {user.partition(':')[0]} " in "".join(value for name, value in last if name == "RUN")
    after = [name for name, _ in last[[name for name, _ in last].index("USER") :]]
    assert not {"RUN", "COPY", "ADD"} & set(after)


def test_results_are_on_a_volume_that_its_user_owns(
    dockerfile: str, stages_of: Stages, value_of: Value, environ_of: Callable[[Stage], dict[str, str]]
) -> None:
    last = stages_of(dockerfile)[-1]
    assert value_of(last, "VOLUME") == value_of(last, "WORKDIR") == "/results"
    assert "--owner=tensorplay" in value_of([each for each in last if "/results" in each[1]], "RUN")
    files = [value for name, value in environ_of(last).items() if name.endswith("FILENAME")]
    assert len(files) == 2
    assert all(value.startswith("/results/") for value in files)


def test_its_health_is_asked_of_livez_by_python_alone(dockerfile: str, stages_of: Stages, value_of: Value) -> None:
    check = value_of(stages_of(dockerfile)[-1], "HEALTHCHECK")
    assert 'CMD ["python", "-I", "-c"' in check
    assert "/livez" in check
    assert not re.search(r"curl|wget", check)


def test_no_layer_holds_a_token(dockerfile: str) -> None:
    text = (ROOT / "docker" / dockerfile).read_text(encoding="utf-8")
    instructions = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    assert not re.search(r"token|secret|password", instructions, re.IGNORECASE)
    assert "ARG" not in instructions


def test_no_layer_keeps_what_pip_downloaded(dockerfile: str, stages_of: Stages) -> None:
    runs = [value for stage in stages_of(dockerfile) for name, value in stage if name == "RUN"]
    calls = [call for run in runs for call in re.findall(r"pip (?:install|wheel) .*", run)]
    assert calls
    assert all("--no-cache-dir" in call for call in calls)


def test_the_two_differ_in_what_is_for_gpus_only(stages_of: Stages) -> None:
    host, cuda = ([each for stage in stages_of(name) for each in stage] for name in ("Dockerfile", "Dockerfile.cuda"))
    assert [name for name, _ in host] == [name for name, _ in cuda]
    changed = [name for (name, value), (_, other) in zip(host, cuda, strict=True) if value != other]
    assert changed == ["RUN", "ENV", "CMD"]


def test_what_is_sent_to_the_engine_is_what_is_copied(stages_of: Stages) -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*", "everything else is left out: history, environments, results, secrets"
    sent = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {
        source
        for name in ("Dockerfile", "Dockerfile.cuda")
        for stage in stages_of(name)
        for instruction, value in stage
        if instruction == "COPY" and "--from" not in value
        for source in value.split()[:-1]
        if not source.startswith("--")
    }
    assert sent == copied
    assert all((ROOT / path).exists() for path in sent)
