"""Which device is current, whose winner a line of a file is, and where each one is forgotten and written."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends import registry
from tensorplay.database.record import Validator
from tensorplay.errors import ResultsFileWarning
from tensorplay.gemm import GemmProblem, Signature, dtype_of_name, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
ON = {"TP_TUNABLEOP_ENABLED": "1"}
OP = "GemmTunableOp_Float32"
VALIDATORS = ("Validator,TP_TUNABLEOP_FORMAT,1", "Validator,MODEL,one", "Validator,SCRIPTED_VERSION,1")


class Machine(ScriptedBackend):
    """Devices of which device 0 is current; those of one model have the same validators."""

    def __init__(self, models: dict[str, str]) -> None:
        super().__init__({FIRST: 1.0, FAST: 0.5, SLOW: 2.0})
        self.models = models

    def validators(self, device: str) -> tuple[Validator, ...]:
        return (Validator("MODEL", self.models[device]), Validator("SCRIPTED_VERSION", self._version))

    def context(self, directory: Path) -> TuningContext:
        return TuningContext(environ=ON, directory=directory, backends=dict.fromkeys(self.models, self))


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


def held(context: TuningContext) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in context.recorded():
        found.setdefault(each.device, set()).add(each.params)
    return found


@pytest.fixture
def twins() -> Machine:
    """Two devices of one model."""
    return Machine({"0": "one", "1": "one"})


class TestForgetting:
    def test_a_winner_of_a_device_that_was_not_met_yet_takes_it_out_of_that_device_s_file(
        self, twins: Machine, tmp_path: Path
    ) -> None:
        problem, before = problem_on("1"), twins.context(tmp_path)
        before.resolve(problem, twins)
        context = twins.context(tmp_path)
        assert context.forget(*signature_of(problem))
        assert "lt_id" not in (tmp_path / "tunableop_results1.csv").read_text()
        assert not (tmp_path / "tunableop_results0.csv").exists()
        context.resolve(problem, twins)
        assert context.stats()["measured"] == 1

    def test_a_winner_reaches_every_device_that_has_read_it(self, twins: Machine, tmp_path: Path) -> None:
        context = twins.context(tmp_path)
        write(tmp_path / "both.csv", line("0"), line("1"))
        context.set_filename("both.csv")
        for device in ("0", "1"):
            context.resolve(problem_on(device), twins)
        assert held(context) == {device: {params("0"), params("1")} for device in ("0", "1")}
        assert context.forget(OP, params("1"))
        assert held(context) == {device: {params("0")} for device in ("0", "1")}
        assert not context.forget(OP, params("1"))
        assert params("1") not in (tmp_path / "both.csv").read_text()

    def test_a_winner_of_a_device_that_is_not_here_takes_it_out_of_the_current_one_s_file(self, tmp_path: Path) -> None:
        write(tmp_path / "tunableop_results0.csv", line("0"), line("7"))
        context = Machine({"0": "one"}).context(tmp_path)
        assert context.forget(OP, params("7"))
        assert params("7") not in (tmp_path / "tunableop_results0.csv").read_text()
        assert held(context) == {"0": {params("0")}}


def test_what_a_person_does_to_a_winner_is_done_where_its_own_device_has_it(twins: Machine, tmp_path: Path) -> None:
    context = twins.context(tmp_path)
    write(tmp_path / "both.csv", line("1"))
    context.set_filename("both.csv")
    for device in ("0", "1"):
        context.resolve(problem_on(device), twins)
    assert context.pin_winner(OP, params("1"))
    assert {each.device for each in context.recorded() if each.pinned} == {"1"}


class TestTheCurrentDevice:
    @pytest.mark.parametrize("order", [("cpu", "0"), ("0", "cpu")])
    def test_is_a_gpu_s_whichever_came_first(self, tmp_path: Path, order: tuple[str, str]) -> None:
        backends = {name: ScriptedBackend({FIRST: 1.0, FAST: 0.5}, device=name, version=name) for name in order}
        before = TuningContext(environ=ON, directory=tmp_path)
        before.resolve(problem_on("0"), backends["0"])
        (tmp_path / "tunableop_results0.csv").rename(tmp_path / "gpu.csv")
        context = TuningContext(environ=ON, directory=tmp_path)
        for name, backend in backends.items():
            context.resolve(problem_on(name, 9), backend)
        assert context.get_filename() == "tunableop_results0.csv"
        assert ("SCRIPTED_VERSION", "0") in context.get_validators()
        assert context.read_file("gpu.csv")
        assert held(context) == {"0": {params("0"), params("0", 9)}, "cpu": {params("cpu", 9)}}

    def test_of_a_program_that_multiplies_on_the_host_is_asked_of_nobody_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def start_driver() -> None:
            raise AssertionError("a driver was started")

        host = ScriptedBackend({FIRST: 1.0, FAST: 0.5}, device="cpu")
        context = TuningContext(environ=ON, directory=tmp_path)
        context.resolve(problem_on("cpu"), host)
        for name in ("default_backend", "backend_of"):
            monkeypatch.setattr(registry, name, start_driver)
        assert context.get_filename() == "tunableop_resultscpu.csv"
        assert context.write_file("all.csv")
        with (tmp_path / "all.csv").open("a") as file:
            file.write(line("0", 8) + "\n")
        assert context.read_file("all.csv")
        assert held(context) == {"cpu": {params("cpu"), params("0", 8)}}

    def test_s_backend_does_not_speak_for_devices_of_another_kind(self, twins: Machine, tmp_path: Path) -> None:
        context = twins.context(tmp_path)
        assert "HOST_CPU" in dict(context.validators_of("cpu"))
        assert dict(context.validators_of("1"))["MODEL"] == "one"


class TestReadingAFile:
    def test_of_several_devices_gives_each_its_own_winners(self, twins: Machine, tmp_path: Path) -> None:
        context = twins.context(tmp_path)
        write(tmp_path / "mine.csv", line("0"), line("1"), line("7"))
        assert context.read_file("mine.csv")
        context.resolve(problem_on("1"), twins)
        # Device 7 is not here.
        assert held(context) == {"0": {params("0"), params("7")}, "1": {params("1")}}
        assert (context.stats()["measured"], context.stats()["replayed"]) == (0, 1)
        assert context.write_file()
        assert params("1") not in (tmp_path / "tunableop_results0.csv").read_text()
        assert params("1") in (tmp_path / "tunableop_results1.csv").read_text()

    def test_keeps_what_the_other_device_has_unless_told_otherwise(self, twins: Machine, tmp_path: Path) -> None:
        context = twins.context(tmp_path)
        context.resolve(problem_on("1"), twins)
        write(tmp_path / "mine.csv", line("1", kernel=SLOW))
        assert context.read_file("mine.csv")
        assert [each.kernel for each in context.recorded()] == [FAST]
        assert context.read_file("mine.csv", overwrite=True)
        assert [(each.kernel, each.device) for each in context.recorded()] == [(SLOW, "1")]

    def test_of_a_device_of_another_model_needs_no_current_device(self, tmp_path: Path) -> None:
        machine = Machine({"0": "another", "1": "one"})
        context = machine.context(tmp_path)
        context.validators_of("1")
        write(tmp_path / "mine.csv", line("1"), line("0"))
        assert context.read_file("mine.csv")
        assert held(context)["1"] == {params("1"), params("0")}, "no other device may have a line of this file"

    def test_of_another_build_is_refused_once_and_meets_no_device(self, tmp_path: Path) -> None:
        context = Machine({"0": "another", "1": "third"}).context(tmp_path)
        write(tmp_path / "mine.csv", line("1"))
        with pytest.warns(ResultsFileWarning, match="MODEL: expected 'another', found 'one'") as caught:
            assert not context.read_file("mine.csv")
        assert len(caught) == 1
        assert held(context) == {}
        assert [device for device, _ in context.results_files()] == ["0"]

    def test_tells_once_of_lines_that_cannot_be_read(self, twins: Machine, tmp_path: Path) -> None:
        context = twins.context(tmp_path)
        write(tmp_path / "mine.csv", line("0"), line("1"), f"{OP},{params('1', 5)},what,1.0,2.0")
        with pytest.warns(ResultsFileWarning, match="lines that are not used") as caught:
            assert context.read_file("mine.csv")
        assert len(caught) == 1
        assert [fault.device for fault in context.file_faults()] == ["0"]

    @given(st.lists(st.tuples(st.sampled_from(["0", "1", "2", "7", "cpu"]), st.integers(1, 4)), max_size=12))
    def test_loses_no_line_and_moves_none_to_a_device_that_it_does_not_match(
        self, tmp_path_factory: pytest.TempPathFactory, named: list[tuple[str, int]]
    ) -> None:
        directory = tmp_path_factory.mktemp("read")
        context = Machine({"0": "one", "1": "one", "2": "two"}).context(directory)
        write(directory / "mine.csv", *(line(device, m) for device, m in named))
        assert context.read_file("mine.csv")
        context.validators_of("1")
        expected: dict[str, set[str]] = {}
        for device, m in named:
            expected.setdefault("1" if device == "1" else "0", set()).add(params(device, m))
        assert held(context) == expected


class TestWritingAFileOfAName:
    def test_puts_the_winners_of_all_devices_that_match_it_there(self, twins: Machine, tmp_path: Path) -> None:
        context = twins.context(tmp_path)
        for device in ("1", "0"):
            context.resolve(problem_on(device), twins)
        assert context.write_file("all.csv")
        assert {path.name for path in tmp_path.glob("all*.csv")} == {"all.csv"}
        fresh = twins.context(tmp_path / "elsewhere")
        assert fresh.read_file(str(tmp_path / "all.csv"))
        fresh.validators_of("1")
        assert held(fresh) == {"0": {params("0")}, "1": {params("1")}}

    def test_puts_those_of_others_beside_it_where_they_are_read_again(self, tmp_path: Path) -> None:
        machine = Machine({"0": "one", "1": "two"})
        context = machine.context(tmp_path)
        for device in ("1", "0"):
            context.resolve(problem_on(device), machine)
        assert context.write_file("all.csv")
        assert params("1") not in (tmp_path / "all.csv").read_text()
        assert len(list(tmp_path.glob("all.*.csv"))) == 1
        fresh = machine.context(tmp_path / "elsewhere")
        fresh.disable()
        fresh.validators_of("1")
        assert fresh.read_file(str(tmp_path / "all.csv"))
        assert held(fresh) == {"0": {params("0")}, "1": {params("1")}}

    def test_is_that_of_the_device_that_has_winners(self, tmp_path: Path) -> None:
        machine = Machine({"0": "one", "1": "two"})
        context = machine.context(tmp_path)
        context.resolve(problem_on("1"), machine)
        assert context.write_file("all.csv")
        assert "MODEL,two" in (tmp_path / "all.csv").read_text()
        assert params("1") in (tmp_path / "all.csv").read_text()


@pytest.mark.parametrize(
    "read",
    [
        TuningContext.get_results,
        TuningContext.recorded,
        TuningContext.write_file,
        lambda context: context.explain(OP, params("0")),
        lambda context: context.recorded_of([Signature(OP, params("0"))]),
        lambda context: context.set_filename("other.csv"),
    ],
)
def test_a_signal_handler_that_meets_a_device_disturbs_no_reader(
    twins: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[TuningContext], object]
) -> None:
    context = twins.context(tmp_path)
    context.resolve(problem_on("0"), twins)
    device = context._devices["0"]

    def interrupted(method: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **options: object) -> object:
            if "1" not in context._devices:
                context.resolve(problem_on("1"), twins)
            return method(*arguments, **options)

        return run

    for owner, name in ((device, "redirect"), (device.results, "unsorted"), (device.results, "get")):
        monkeypatch.setattr(owner, name, interrupted(getattr(owner, name)))
    # As in a program of one thread: beside others a handler's product measures nothing.
    monkeypatch.setattr("tensorplay.runtime.measuring.is_nested", lambda: False)
    read(context)
    assert held(context) == {"0": {params("0")}, "1": {params("1")}}
