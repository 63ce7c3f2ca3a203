"""A file with lines of a device that was not used yet: who keeps them, and what becomes of them when it is used."""

from pathlib import Path

import pytest

from tensorplay.database.record import Validator
from tensorplay.gemm import GemmProblem, dtype_of_name, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
OP = "GemmTunableOp_Float32"
VALIDATORS = ("Validator,TP_TUNABLEOP_FORMAT,1", "Validator,MODEL,one", "Validator,SCRIPTED_VERSION,1")


class Machine(ScriptedBackend):
    """Devices of which device 0 is current; `asked` are those that were opened to be asked what their files match."""

    def __init__(self, models: dict[str, str]) -> None:
        super().__init__({FIRST: 1.0, FAST: 0.5, SLOW: 2.0})
        self.models = models
        self.asked: set[str] = set()

    def validators(self, device: str) -> tuple[Validator, ...]:
        self.asked.add(device)
        return (Validator("MODEL", self.models[device]), Validator("SCRIPTED_VERSION", self._version))

    def context(self, directory: Path) -> TuningContext:
        backends = dict.fromkeys(self.models, self)
        return TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=directory, backends=backends)


def problem_on(device: str, m: int = 4) -> GemmProblem:
    dtype = dtype_of_name("float32")
    assert dtype is not None
    return GemmProblem(dtype=dtype, m=m, n=3, k=5, device=device)


def params(device: str, m: int = 4) -> str:
    return signature_of(problem_on(device, m)).params


def write(path: Path, *lines: str) -> None:
    path.write_text("\n".join([*VALIDATORS, *lines, ""]))


def line(device: str, m: int = 4, kernel: str = FAST) -> str:
    return f"{OP},{params(device, m)},{kernel},0.5"


@pytest.fixture
def twins() -> Machine:
    """Two devices of one model."""
    return Machine({"0": "one", "1": "one"})


def test_reading_it_opens_no_device_that_was_not_used(twins: Machine, tmp_path: Path) -> None:
    context = twins.context(tmp_path)
    write(tmp_path / "mine.csv", line("0"), line("1"))
    assert context.read_file("mine.csv")
    assert twins.asked == {"0"}, "each of many processes would take up memory of every GPU"
    assert [device for device, _ in context.results_files()] == ["0"]
    assert context.get_results() == [(OP, params(device), FAST, 0.5) for device in ("0", "1")]


def test_it_gives_a_device_that_is_used_later_its_own_although_the_file_is_gone(twins: Machine, tmp_path: Path) -> None:
    context = twins.context(tmp_path)
    write(tmp_path / "mine.csv", line("0"), line("1"), line("1", 8), line("1", 9))
    write(tmp_path / "tunableop_results1.csv", line("1", kernel=SLOW))
    assert context.read_file("mine.csv")
    (tmp_path / "mine.csv").unlink()
    assert context.pin_winner(OP, params("1", 8))
    context.resolve(problem_on("1"), twins)
    found = {(each.params, each.device, each.kernel, each.pinned) for each in context.recorded()}
    assert found == {
        (params("0"), "0", FAST, False),
        (params("1"), "1", FAST, False),
        (params("1", 8), "1", FAST, True),
        (params("1", 9), "1", FAST, False),
    }
    assert context.stats()["measured"] == 0


def test_it_gives_a_device_that_is_used_later_nothing_that_was_forgotten_meanwhile(
    twins: Machine, tmp_path: Path
) -> None:
    context = twins.context(tmp_path)
    write(tmp_path / "mine.csv", line("0"), line("1"))
    assert context.read_file("mine.csv")
    assert context.forget(OP, params("1"))
    context.resolve(problem_on("1"), twins)
    assert context.stats()["measured"] == 1


def test_the_reader_keeps_what_a_device_of_another_model_does_not_match(tmp_path: Path) -> None:
    machine = Machine({"0": "one", "1": "another"})
    context = machine.context(tmp_path)
    write(tmp_path / "mine.csv", line("0"), line("1"))
    assert context.read_file("mine.csv")
    context.resolve(problem_on("1"), machine)
    assert {(each.params, each.device) for each in context.recorded()} == {
        (params("0"), "0"),
        (params("1"), "0"),
        (params("1"), "1"),
    }
    assert context.stats()["measured"] == 1
