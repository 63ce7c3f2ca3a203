"""`tensorplay ctl`: a running service, steered by words."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tensorplay.cli.ctl import ctl
from tensorplay.cli.main import main
from tensorplay.gemm import parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start
from tensorplay.service.identity import result_id
from tensorplay.testing import ScriptedBackend, scripted_kernel

Ctl = Callable[..., Result]
OP = "GemmTunableOp_Float32"
PARAMS = "taN_m{}_n3_k5_bias0_dev0"


@pytest.fixture
def backend() -> ScriptedBackend:
    return ScriptedBackend({scripted_kernel(1): 1.0, scripted_kernel(2): 0.5})


@pytest.fixture
def context(tmp_path: Path, backend: ScriptedBackend) -> Iterator[TuningContext]:
    made = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend})
    yield made
    made.close()


@pytest.fixture
def service(context: TuningContext) -> Iterator[Service]:
    with start(context=context) as service:
        yield service


@pytest.fixture
def run_ctl(service: Service) -> Ctl:
    environ = {"TENSORPLAY_URL": service.url, "TENSORPLAY_TOKEN": service.token}
    return lambda *arguments: CliRunner().invoke(main, ["ctl", *arguments], env=environ)


@pytest.fixture
def multiply(context: TuningContext, backend: ScriptedBackend) -> Callable[[int], object]:
    return lambda m: context.resolve(parse_signature(OP, PARAMS.format(m)), backend)


def test_switches_act_at_once(run_ctl: Ctl, context: TuningContext) -> None:
    assert run_ctl("disable").exit_code == 0
    assert not context.is_enabled()
    result = run_ctl("enable")
    assert result.stdout.splitlines()[1].split() == ["enabled", "true", "rest"]
    assert context.is_enabled()
    run_ctl("tuning", "off")
    assert not context.tuning_is_enabled()
    run_ctl("tuning", "on")
    assert context.tuning_is_enabled()


def test_a_setting_is_written_as_in_the_environment(run_ctl: Ctl, context: TuningContext) -> None:
    result = run_ctl("set", "numerical_check", "1e-3_1e-2")
    assert result.exit_code == 0, result.output
    assert run_ctl("set", "sources", "numpy,scipy").exit_code == 0
    values = {each.name: each.value for each in context.settings()}
    assert values["sources"] == ("numpy", "scipy")
    assert values["numerical_check"] != "on"
    for name, value, code, says in (
        ("min_gian", "1", 2, "did you mean min_gain?"),
        ("min_gain", "much", 2, "min_gain was given 'much'"),
        ("min_gain", "-1", 2, "min_gain was given '-1'"),
        ("filename", "x.csv", 1, "filename cannot be changed by a client"),
    ):
        result = run_ctl("set", name, value)
        assert (result.exit_code, says in result.output) == (code, True), result.output


def test_the_process_and_its_counts_are_shown(run_ctl: Ctl, multiply: Callable[[int], object]) -> None:
    multiply(1)
    result = run_ctl("status")
    assert result.exit_code == 0
    assert "max_tuning_samples" in result.stdout
    document = json.loads(run_ctl("--json", "status").stdout)
    assert document.keys() == {"instance", "settings", "stats"}
    assert sum(document["stats"].values()) == 1


def test_winners_are_shown_sorted_filtered_and_limited(run_ctl: Ctl, multiply: Callable[[int], object]) -> None:
    for m in (1, 2, 3):
        multiply(m)
    assert run_ctl("results").stdout.splitlines()[-1] == "3 winners"
    found = json.loads(run_ctl("--json", "results", "--sort", "-m", "--limit", "2").stdout)
    assert [each["m"] for each in found] == [3, 2]
    assert len(json.loads(run_ctl("--json", "results", "--limit", "0").stdout)) == 3
    assert [each["m"] for each in json.loads(run_ctl("--json", "results", "-q", "_m2_").stdout)] == [2]
    assert run_ctl("results", "--sort", "beauty").exit_code == 1


def test_untuned_signatures_are_tuned(run_ctl: Ctl, multiply: Callable[[int], object], context: TuningContext) -> None:
    nothing = run_ctl("tune")
    assert (nothing.exit_code, "no signatures to tune" in nothing.output) == (1, True)
    context.tuning_disable()
    multiply(1)
    one = result_id(OP, PARAMS.format(1))
    assert run_ctl("untuned").stdout.splitlines()[1].split() == [one, OP, PARAMS.format(1), "1"]
    result = run_ctl("tune")
    assert result.exit_code == 0, result.output
    assert "succeeded" in result.stdout
    assert len(context.get_results()) == 1
    started = json.loads(run_ctl("--json", "tune", "--no-wait", f"{OP},{PARAMS.format(2)}").stdout)
    assert started["total"] == 1
    assert len(run_ctl("jobs").stdout.splitlines()) == 4
    assert run_ctl("jobs", "--cancel", started["id"]).exit_code == 0
    assert run_ctl("jobs", "--cancel", "none").exit_code == 1


def test_what_could_not_be_measured_is_said(run_ctl: Ctl) -> None:
    elsewhere = f"{OP},{PARAMS.format(1).replace('dev0', 'dev7')}"
    result = run_ctl("tune", elsewhere)
    assert result.exit_code == 1
    assert f"not measured: {elsewhere}: " in result.stdout
    assert f"not measured: {elsewhere}: " in run_ctl("jobs").stdout
    assert run_ctl("tune", "what").exit_code == 2
    assert run_ctl("tune", "what,ever").exit_code == 1


def test_a_refusal_or_no_service_is_one_line(run_ctl: Ctl, service: Service) -> None:
    refused = run_ctl("--token", "wrong", "disable")
    assert (refused.exit_code, refused.output.count("\n")) == (1, 1)
    assert "token-needed" in refused.output
    service.stop()
    gone = run_ctl("status")
    assert (gone.exit_code, gone.output.count("\n")) == (1, 1)
    assert "cannot be reached" in gone.output
    assert run_ctl("--url", "nowhere", "status").exit_code == 2


def test_every_verb_and_its_options_are_on_the_page() -> None:
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    section = page.read_text(encoding="utf-8").partition("## `tensorplay ctl`\n")[2].partition("\n## ")[0]
    for name, command in ctl.commands.items():
        row = next(line for line in section.splitlines() if line.startswith("|") and f"`{name}" in line)
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.opts[0] in row
