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
        ("min_gain", "none", 2, "min_gain was given 'none'"),
        ("min_gain", "", 2, "min_gain was given ''"),
        ("min_gian", "default", 2, "did you mean min_gain?"),
        ("filename", "x.csv", 1, "filename cannot be changed by a client"),
        ("filename", "default", 1, "filename cannot be changed by a client"),
    ):
        result = run_ctl("set", name, value)
        assert (result.exit_code, says in result.output) == (code, True), result.output


@pytest.mark.parametrize("text", ["None", "none", "NULL", "default"])
def test_a_setting_goes_back_to_none_or_its_default(run_ctl: Ctl, context: TuningContext, text: str) -> None:
    assert run_ctl("set", "rotating_buffer_size", "7").stdout.splitlines()[1].split()[:2] == [
        "rotating_buffer_size",
        "7",
    ]
    changed = run_ctl("set", "rotating_buffer_size", text)
    origin = "default" if text == "default" else "rest"
    assert changed.stdout.splitlines()[1].split() == ["rotating_buffer_size", "None", origin]
    assert {each.name: each.value for each in context.settings()}["rotating_buffer_size"] is None


def test_all_sources_is_an_empty_text_and_default_is_what_the_environment_says(
    run_ctl: Ctl, context: TuningContext
) -> None:
    assert run_ctl("set", "sources", "numpy,scipy").stdout.splitlines()[1].split() == ["sources", "numpy,scipy", "rest"]
    assert run_ctl("set", "sources", "").exit_code == 0
    assert {each.name: each.value for each in context.settings()}["sources"] == ()
    assert run_ctl("disable").exit_code == 0
    assert run_ctl("set", "enabled", "default").stdout.splitlines()[1].split() == ["enabled", "true", "environment"]
    assert context.is_enabled()


def test_text_is_shown_as_it_is_set(run_ctl: Ctl) -> None:
    assert run_ctl("set", "numerical_check", "off").stdout.splitlines()[1].split() == ["numerical_check", "off", "rest"]


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
    assert run_ctl("results", "--limit", "2").stdout.splitlines()[-1] == "2 of 3 winners"
    assert run_ctl("results", "--limit", "3").stdout.splitlines()[-1] == "3 winners"
    assert run_ctl("results", "-q", "_m2_", "--limit", "1").stdout.splitlines()[-1] == "1 winner"
    refused = run_ctl("results", "--sort", "beauty")
    assert (refused.exit_code, "--sort should be 'op'" in refused.output) == (1, True)
    assert "`errors`" not in refused.output


def test_what_has_a_winner_is_measured_only_again(run_ctl: Ctl, multiply: Callable[[int], object]) -> None:
    multiply(1)
    one = f"{OP},{PARAMS.format(1)}"
    skipped = run_ctl("tune", one, f"{OP},{PARAMS.format(2)}")
    assert skipped.exit_code == 0, skipped.output
    assert skipped.stdout.splitlines()[1].split()[1:5] == ["succeeded", "2/2", "1", "0"]
    assert "1 signature has a winner and was not measured; --again measures such ones too" in skipped.stdout
    again = run_ctl("tune", "--again", one)
    assert again.stdout.splitlines()[1].split()[1:5] == ["succeeded", "1/1", "0", "0"]
    assert "--again" not in again.stdout


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
    assert f"no new winner: {elsewhere}: " in result.stdout
    assert f"no new winner: {elsewhere}: " in run_ctl("jobs").stdout
    assert run_ctl("tune", "what").exit_code == 2
    refused = run_ctl("tune", f"{OP},{PARAMS.format(1)}", "what,ever")
    assert (refused.exit_code, "signature 2 of 2 is no signature; allowed: GemmTunableOp_" in refused.output) == (
        1,
        True,
    )


def test_who_stops_waiting_for_a_job_is_told_that_it_goes_on(run_ctl: Ctl) -> None:
    many = [f"{OP},{PARAMS.format(size)}" for size in range(1, 60)]
    late = run_ctl("tune", "--timeout", "0.001", *many)
    assert late.exit_code == 1
    assert " after 0.001 s: it goes on, `tensorplay ctl jobs` shows it" in late.output
    job = json.loads(run_ctl("--json", "jobs").stdout)[0]
    run_ctl("jobs", "--cancel", job["id"])


def test_a_refusal_is_one_line_and_no_service_says_where_and_what_to_do(run_ctl: Ctl, service: Service) -> None:
    refused = run_ctl("--token", "wrong", "disable")
    assert (refused.exit_code, refused.output.count("\n")) == (1, 1)
    assert "token-needed" in refused.output
    assert "the token that was sent is another one" in refused.output
    service.stop()
    gone = run_ctl("status")
    where, hint = gone.output.splitlines()
    assert gone.exit_code == 1
    assert where.startswith(f"Error: the service cannot be reached at {service.url}: ")
    for way in ("--url", "TENSORPLAY_URL", "TP_TUNABLEOP_DASHBOARD=", "tensorplay serve --discover"):
        assert way in hint
    assert run_ctl("--url", "nowhere", "status").exit_code == 2


def test_every_verb_and_its_options_are_on_the_page() -> None:
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    section = page.read_text(encoding="utf-8").partition("## `tensorplay ctl`\n")[2].partition("\n## ")[0]
    for name, command in ctl.commands.items():
        row = next(line for line in section.splitlines() if line.startswith("|") and f"`{name}" in line)
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.opts[0] in row


def test_the_help_says_of_every_verb_what_it_does_in_one_line() -> None:
    lines = CliRunner().invoke(main, ["ctl", "--help"], terminal_width=80).stdout.splitlines()
    listed = [line for line in lines[lines.index("Commands:") + 1 :] if line.startswith("  ")]
    listed = listed[: len(ctl.commands)]
    assert [line.split()[0] for line in listed] == sorted(ctl.commands)
    assert all(line.endswith(".") and not line.endswith("..") for line in listed)
