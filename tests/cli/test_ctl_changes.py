"""`tensorplay ctl`: winners, lists and files of a running process, steered by words."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tensorplay.cli.main import main
from tensorplay.gemm import parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import start
from tensorplay.service.identity import result_id
from tensorplay.testing import ScriptedBackend, scripted_kernel

Ctl = Callable[..., Result]
FIRST, FAST = scripted_kernel(1), scripted_kernel(2)
OP, PARAMS = "GemmTunableOp_Float32", "taN_m{}_n3_k5_bias0_dev0"


@pytest.fixture
def backend() -> ScriptedBackend:
    return ScriptedBackend({FIRST: 1.0, FAST: 0.5})


@pytest.fixture
def context(tmp_path: Path, backend: ScriptedBackend) -> Iterator[TuningContext]:
    made = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend})
    yield made
    made.close()


@pytest.fixture
def run_ctl(context: TuningContext) -> Iterator[Ctl]:
    with start(context=context) as service:
        environ = {"TENSORPLAY_URL": service.url, "TENSORPLAY_TOKEN": service.token}
        yield lambda *arguments: CliRunner().invoke(main, ["ctl", *arguments], env=environ)


@pytest.fixture
def multiply(context: TuningContext, backend: ScriptedBackend) -> Callable[[int], str]:
    """Runs a product, and returns the id of its signature."""

    def call(m: int) -> str:
        context.resolve(parse_signature(OP, PARAMS.format(m)), backend)
        return result_id(OP, PARAMS.format(m))

    return call


def test_devices_and_the_runtime_are_shown_and_products_decided_anew(
    run_ctl: Ctl, multiply: Callable[[int], str], context: TuningContext
) -> None:
    multiply(1)
    shown = run_ctl("devices").stdout
    assert "1 device" in shown and "SCRIPTED_VERSION" in shown
    assert [each["results"] for each in json.loads(run_ctl("--json", "devices").stdout)] == [1]
    assert "0 plans ready, " in run_ctl("runtime").stdout and "TP_TUNABLEOP_ENABLED" in run_ctl("runtime").stdout
    assert json.loads(run_ctl("--json", "runtime").stdout)["plans"] == 0
    before = context.plans
    assert run_ctl("reresolve").stdout == "0 plans let go of\n"
    assert json.loads(run_ctl("--json", "reresolve").stdout) == {"plans": 0}
    assert context.plans is not before


def test_a_winner_is_pinned_overridden_restored_and_forgotten(
    run_ctl: Ctl, multiply: Callable[[int], str], context: TuningContext
) -> None:
    one = multiply(1)
    multiply(2)
    assert run_ctl("pin", one).stdout.strip().endswith(f"is pinned to {FAST}")
    assert json.loads(run_ctl("--json", "pin", one).stdout)["pinned"] is True
    assert run_ctl("results", "--pinned").stdout.splitlines()[-1] == "1 winner"
    refused = run_ctl("forget", one)
    assert (refused.exit_code, "pinned" in refused.output) == (1, True)
    assert run_ctl("unpin", one).stdout == f"{OP},{PARAMS.format(1)} is no longer pinned\n"
    assert run_ctl("--json", "unpin", one).stdout == ""
    assert run_ctl("override", one, FIRST).stdout == f"{OP},{PARAMS.format(1)} runs {FIRST}\n"
    assert json.loads(run_ctl("--json", "override", one, "Default").stdout)["kernel"] == "Default"
    refused = run_ctl("override", one, "no kernel")
    assert refused.exit_code == 1 and "kernel id" in refused.output
    assert run_ctl("restore", one).stdout == f"{OP},{PARAMS.format(1)} runs {FAST} again\n"
    assert run_ctl("restore", one).exit_code == 1
    assert run_ctl("history", one).stdout.splitlines()[-1] == "4 winners"
    # Nothing was timed for an override.
    overridden = [line for line in run_ctl("history", one).stdout.splitlines() if line.endswith("override")]
    assert [line.split()[-2] for line in overridden] == ["-", "-"]
    told = json.loads(run_ctl("--json", "history", one).stdout)
    assert [past["origin"] for past in told] == ["measured here", "override", "override", "measured here"]
    assert run_ctl("forget", one).stdout == f"forgotten: {OP},{PARAMS.format(1)}\n"
    assert len(context.get_results()) == 1
    assert run_ctl("forget").exit_code == run_ctl("forget", one, "--all").exit_code == 2
    assert run_ctl("forget", "--all").stdout == "forgotten: 1 winner\n"
    assert context.get_results() == []


def test_rejections_are_shown_measured_anew_and_cleared(
    run_ctl: Ctl, multiply: Callable[[int], str], context: TuningContext, backend: ScriptedBackend
) -> None:
    multiply(1)
    context.tuning_disable()
    backend.unavailable[FAST] = "gone"
    context.plans.clear()
    multiply(1)
    assert "gone" in run_ctl("rejections").stdout
    (met,) = json.loads(run_ctl("--json", "rejections").stdout)
    assert "succeeded" in run_ctl("rejections", "--retune", met["id"]).stdout
    assert [kernel for _, _, kernel, _ in context.get_results()] == [FIRST]
    assert run_ctl("rejections", "--clear").stdout.splitlines()[-1] == "0 rejections"


def test_untuned_signatures_are_dropped_and_jobs_forgotten(
    run_ctl: Ctl, multiply: Callable[[int], str], context: TuningContext
) -> None:
    context.tuning_disable()
    one = multiply(1)
    multiply(2)
    assert run_ctl("untuned", "--drop", one).stdout.splitlines()[-1] == "1 untuned signature"
    assert run_ctl("untuned", "--clear").stdout.splitlines()[-1] == "0 untuned signatures"
    multiply(3)
    job = json.loads(run_ctl("--json", "tune", "--budget", "30").stdout)
    assert job["budget"]["total_seconds"] == 30
    assert run_ctl("jobs", "--forget", job["id"]).stdout.splitlines()[-1] == "0 jobs"


def test_files_are_saved_loaded_and_tuned_from(
    run_ctl: Ctl, multiply: Callable[[int], str], context: TuningContext, tmp_path: Path
) -> None:
    multiply(1)
    assert run_ctl("save", "mine.csv").exit_code == 0
    again = run_ctl("save", "mine.csv")
    assert (again.exit_code, "exists" in again.output) == (1, True)
    assert json.loads(run_ctl("--json", "save", "mine.csv", "--over").stdout)["winners"] == 1
    assert run_ctl("save").stdout.strip() == "written"
    assert run_ctl("files").stdout.splitlines()[-1] == "3 files"
    assert {each["name"] for each in json.loads(run_ctl("--json", "files").stdout)} >= {"mine.csv"}
    context.forget_all()
    assert [line.split() for line in run_ctl("load", "mine.csv").stdout.splitlines()][1] == ["merged", "1"]
    assert json.loads(run_ctl("--json", "load", "mine.csv", "--overwrite").stdout)["replaced"] == 0
    (tmp_path / "wanted.csv").write_text(f"{OP},{PARAMS.format(7)}\n")
    assert "succeeded" in run_ctl("tune", "--file", "wanted.csv").stdout
    assert len(context.get_results()) == 2
    assert run_ctl("load", "none.csv").exit_code == 1
    theirs = (tmp_path / "mine.csv").read_text().replace("SCRIPTED_VERSION,1", "SCRIPTED_VERSION,2")
    (tmp_path / "theirs.csv").write_text(theirs)
    refused = run_ctl("load", "theirs.csv").stderr
    assert "SCRIPTED_VERSION: the process has 1; the file has 2" in refused
    assert "mismatches" not in refused


@pytest.mark.parametrize(
    "arguments",
    [
        ("pin", "12345"), ("unpin", "x"), ("forget", "A" * 16), ("restore", "1" * 17), ("history", "\x1b[2J"),
        ("untuned", "--drop", "5"), ("rejections", "--retune", "5"),
    ],
)  # fmt: skip
def test_what_can_be_no_id_is_refused_without_asking(arguments: tuple[str, ...]) -> None:
    refused = CliRunner().invoke(main, ["ctl", "--url", "http://127.0.0.1:1/", *arguments])
    assert refused.exit_code == 2
    assert "is no id; allowed: 16 of 0 to 9 and a to f" in " ".join(refused.stderr.split())
    assert "\x1b" not in refused.stderr


def test_lists_are_exported(run_ctl: Ctl, multiply: Callable[[int], str], tmp_path: Path) -> None:
    multiply(1)
    multiply(2)
    assert [row["m"] for row in csv.DictReader(run_ctl("export", "-q", "_m2_").stdout.splitlines())] == ["2"]
    output = tmp_path / "lines"
    assert run_ctl("export", "--kind", "results.jsonl", "--output", str(output)).exit_code == 0
    assert {json.loads(line)["m"] for line in output.read_text().splitlines()} == {1, 2}
    assert run_ctl("export", "--kind", "beauty").exit_code == 2


def test_a_refusal_says_what_to_do_in_words_of_the_command(
    run_ctl: Ctl, multiply: Callable[[int], str], tmp_path: Path
) -> None:
    result_id = multiply(1)
    run_ctl("pin", result_id)
    for arguments, told in (
        (("forget", result_id), "`tensorplay ctl unpin ID`"),
        (("forget", "--all"), "`tensorplay ctl unpin ID`"),
        (("load", "none.csv"), "`tensorplay ctl files` lists them"),
        (("save", "tunableop_results0.csv"), "give --over"),
        (("save", "new.csv", "--over"), "leave out --over"),
        (("--token", "wrong", "forget", result_id), "give the token, by --token or in TENSORPLAY_TOKEN"),
        (("--token", "wrong", "forget", result_id), "start it anew with it"),
        (("save", "tunableop_untuned0.csv"), "choose another name"),
    ):
        options = arguments[:2] if arguments[0] == "--token" else ()
        refused = run_ctl(*options, *arguments[len(options) :])
        assert refused.exit_code == 1
        assert told in refused.output, refused.output
        for word in ("DELETE", "If-Match", "If-None-Match", "GET /", "Bearer"):
            assert word not in refused.output


def test_what_does_not_fit_is_told_and_is_in_the_document(run_ctl: Ctl) -> None:
    told = run_ctl("--json", "results", "--sort", "beauty")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["errors"][0]["loc"] == ["query", "sort"]


@pytest.mark.parametrize("verb", [("load",), ("save",), ("tune", "--file")])
@pytest.mark.parametrize(
    "name", ["foo.txt", "x.jsonl", "../x.csv", "/srv/x.csv", "no such name", "\x1b[2J.csv", "é.csv"]
)
def test_what_can_be_no_name_of_a_file_is_refused_in_words(verb: tuple[str, ...], name: str) -> None:
    refused = CliRunner().invoke(main, ["ctl", "--url", "http://127.0.0.1:1/", *verb, name])
    told = " ".join(refused.stderr.split())
    assert refused.exit_code == 2
    assert "names no file of the process; allowed: a name without a folder" in told
    assert "[A-Za-z" not in told and "\x1b" not in told


def test_a_file_of_something_else_is_not_said_to_be_missing(run_ctl: Ctl, tmp_path: Path) -> None:
    (tmp_path / "junk.csv").write_text("name,age\nada,36\n")
    refused = run_ctl("load", "junk.csv")
    assert refused.exit_code == 1
    assert "no file of winners, signatures or explanations has that name here; `tensorplay ctl files`" in refused.output
