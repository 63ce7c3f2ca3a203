"""The plan of what is run on GPUs: everything once, in steps that fit, from the last commit, kept as it goes."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

SCRIPT = ROOT / "scripts" / "gpu_all"
# What a command of ten minutes leaves to a step.
LIMIT = 560
# Tells what it was asked, and fails where it is told to.
TOLD = """#!/bin/bash
echo "$(basename "$0") $CUDA_VISIBLE_DEVICES $PARTS ${FILES-} ${SELECTION-}" >"$1/summary.txt"
echo "limit $LIMIT" >>"$1/summary.txt"
cat "$(dirname "$0")/../package/built.so" >>"$1/summary.txt" 2>/dev/null
((LIMIT > 0)) && [[ $PARTS != tunable && ( -z ${FAILING-} || $SELECTION != *"$FAILING" ) ]]
"""


class Job(NamedTuple):
    """A line of the plan."""

    gpus: str
    step: str
    lane: str
    seconds: int
    name: str
    kind: str
    words: tuple[str, ...]


@pytest.fixture(scope="module")
def plan() -> list[Job]:
    """Return the plan that the script prints."""
    printed = subprocess.run((SCRIPT, "--list"), capture_output=True, text=True, check=True).stdout
    return [
        Job(gpus, step, lane, int(seconds), name, kind, tuple(words))
        for gpus, step, lane, seconds, name, kind, *words in map(str.split, printed.splitlines())
    ]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the script in a repository whose other scripts stand in for the real ones."""
    repository = tmp_path / "repository"
    scripts = repository / "scripts"
    scripts.mkdir(parents=True)
    for name, text in (("gpu_all", SCRIPT.read_text()), ("gpu_run", TOLD), ("gpu_bench", TOLD)):
        (scripts / name).write_text(text)
        (scripts / name).chmod(0o755)

    def git(*words: str) -> None:
        told = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run((shutil.which("git") or "git", *told, *words), cwd=repository, check=True, capture_output=True)

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "All")
    for name in ("gpu_run", "gpu_bench"):
        (scripts / name).write_text("#!/bin/bash\necho not committed >$1/summary.txt\n")

    def started(step: str, **environment: str) -> subprocess.CompletedProcess[str]:
        if added := environment.pop("COMMITTED", None):
            git("add", added)
            git("commit", "--quiet", "-m", "More")
        kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        command = (str(scripts / "gpu_all"), str(tmp_path / "out"), step)
        return subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=False)

    return started


def of_kind(plan: list[Job], gpus: str, kind: str) -> Iterator[Job]:
    return (job for job in plan if job.gpus == gpus and job.kind == kind)


@pytest.mark.parametrize("gpus", ["1", "2"])
def test_every_item_of_the_selection_is_measured_once(plan: list[Job], gpus: str) -> None:
    running, setting = import_module("selection.running"), import_module("selection.setting")
    bench = import_module("bench_selection")
    found: dict[str, list[str]] = {}
    for job in (*of_kind(plan, gpus, "selection"), *of_kind(plan, gpus, "abreast")):
        options = bench._parser().parse_args(job.words)
        share = options.share and import_module("selection.sharing").parse_share(options.share)
        wanted = setting.Setting(work=Path(), wanted=options.shapes, share=share)
        for part in options.parts.split(","):
            found.setdefault(part, []).extend(running.wanted_items(part, wanted))
    assert {part: len(items) for part, items in found.items()} == running.expected_items(setting.Setting(work=Path()))
    assert all(len(set(items)) == len(items) for items in found.values())


@pytest.mark.parametrize("gpus", ["1", "2"])
def test_every_other_benchmark_and_all_tests_run_once(plan: list[Job], gpus: str) -> None:
    reach = import_module("bench_cuda_reach")
    assert [sorted(job.words) for job in of_kind(plan, gpus, "reach")] == [sorted(reach.PARTS)]
    assert [job.words for job in of_kind(plan, gpus, "tunable")] == [()]
    told = [job.words for job in of_kind(plan, gpus, "tests")]
    if gpus == "1":
        assert told == [()]
        return
    *shares, further = told
    assert shares == [("0/2",), ("1/2",)]
    # Those that need both GPUs see them in a step of their own.
    assert [(ROOT / file).is_file() for file in further] == [True] * 3


def test_what_was_built_elsewhere_is_put_into_the_clone(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "built" / "package").mkdir(parents=True)
    (tmp_path / "built" / "package" / "built.so").write_text("an extension\n")
    assert "\nan extension\n" in run("2", BUILT=str(tmp_path / "built")).stdout
    assert "an extension" not in run("2").stdout
    assert run("2", BUILT=str(tmp_path / "nowhere")).returncode != 0


def test_two_gpus_share_the_files_of_tests(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "repository" / "tests" / "gpu"
    folder.mkdir(parents=True)
    for name in "abcde":
        (folder / f"test_{name}.py").write_text("")
    # What is measured is a clone.
    done = run("1", GPUS="2", COMMITTED="tests")
    told = [line.split() for line in done.stdout.splitlines() if line.startswith("gpu_run")]
    assert told == [
        ["gpu_run", gpu, "tests", *(f"tests/gpu/test_{name}.py" for name in names)]
        for gpu, names in (("0", "ace"), ("1", "bd"))
    ]


def test_each_gpu_is_done_with_a_step_in_time(plan: list[Job]) -> None:
    seconds: dict[tuple[str, str, str], int] = {}
    for job in plan:
        seconds[job[:3]] = seconds.get(job[:3], 0) + job.seconds
    assert max(seconds.values()) <= LIMIT - 40
    wall = {step: max(took for (gpus, at, _), took in seconds.items() if (gpus, at) == ("2", step)) for step in "1234"}
    assert sum(wall.values()) < 1600


@pytest.mark.nightly
def test_a_plan_tells_about_what_the_benchmark_itself_does(plan: list[Job]) -> None:
    for job in plan:
        if job.kind == "selection":
            command = (sys.executable, str(ROOT / "benchmark" / "bench_selection.py"), "--plan", *job.words)
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            assert 0.85 < job.seconds / float(told[-2]) < 1.3, job
        if job.gpus == "2" and job.step == "3":
            break


def test_each_gpu_runs_its_jobs_of_the_last_commit_and_goes_on_after_a_failure(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = run("2", GPUS="2", CUDA_VISIBLE_DEVICES="5,7")
    assert done.returncode == 0, done.stderr
    assert "== tunable on GPU 0 (exit 1, 0 s)" in done.stdout
    assert "gpu_bench 5 selection  --parts decode\n" in done.stdout
    assert "gpu_bench 7 selection  --parts quality --shapes 30::5\n" in done.stdout
    assert "not committed" not in done.stdout
    # Half as long again as it should take, and some more.
    assert "--parts decode\nlimit 122\n" in done.stdout
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {"gpu0.tgz", "gpu1.tgz", "summary.txt"}
    assert (out / "summary.txt").read_text() == done.stdout
    with tarfile.open(out / "gpu0.tgz") as archive:
        assert "step2/gpu0/decode/summary.txt" in archive.getnames()


def test_one_gpu_runs_tests_and_parts_one_after_another(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run("1")
    assert "gpu_run 0 tests  \n" in done.stdout
    done = run("2")
    assert "gpu_bench 0 steady second_process healing capture values memory host_cost  \n" in done.stdout
    assert [line.split()[1] for line in done.stdout.splitlines()[1:3]] == ["reach", "tunable"]


def test_what_needs_no_quiet_gpu_is_shared_by_processes(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run("6")
    told = sorted(line for line in done.stdout.splitlines() if line.startswith("gpu_"))
    assert told == [f"gpu_bench 0 selection  --parts wrong --share {share}/6" for share in range(6)]
    assert done.stdout.count("limit 310\n") == 6
    assert "== wrong on GPU 0 (exit 0, " in done.stdout


@pytest.mark.parametrize("share", [0, 3, 5])
def test_a_process_that_fails_beside_others_is_told_and_ends_none_of_them(
    run: Callable[..., subprocess.CompletedProcess[str]], share: int
) -> None:
    done = run("6", FAILING=f"--share {share}/6")
    assert "== wrong on GPU 0 (exit 1, " in done.stdout
    assert done.stdout.count("gpu_bench 0 selection") == 6


def test_tests_of_several_devices_see_them_all(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert "gpu_run 0,1 tests tests/gpu/test_devices.py" in run("4", GPUS="2", CUDA_VISIBLE_DEVICES="0,1").stdout


def test_without_a_commit_the_tree_itself_is_measured_and_that_is_told(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "repository" / ".git")
    done = run("2")
    assert "this is the working tree" in done.stdout
    assert "\nnot committed\n" in done.stdout


def test_what_would_begin_too_late_is_left_out_and_told(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run("4", LIMIT="20")
    assert done.stdout.count("not run: the time is up") == 4
    assert "== again_b (not run: the time is up)" in done.stdout


@pytest.mark.parametrize(
    ("step", "environment", "said"),
    [("7", {}, "allowed: 1:1 1:2"), ("1", {"GPUS": "2", "CUDA_VISIBLE_DEVICES": "3"}, "names 1 GPUs; needed: 2")],
)
def test_a_step_that_cannot_be_run_is_refused(
    run: Callable[..., subprocess.CompletedProcess[str]], step: str, environment: dict[str, str], said: str
) -> None:
    done = run(step, **environment)
    assert done.returncode == 2
    assert said in done.stderr
