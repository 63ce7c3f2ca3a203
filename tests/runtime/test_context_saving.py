"""What `write_file` does to a file that other processes, or other devices of this one, use too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.record import Validator
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

MakeContext = Callable[..., TuningContext]
FASTEST = scripted_kernel(4)


class Alike(ScriptedBackend):
    """A second device of the kind of the first, whose files both of them can use."""

    def validators(self, device: str) -> tuple[Validator, ...]:
        del device
        return super().validators("0")


def winners(path: Path) -> list[str]:
    return [line.split(",")[2] for line in path.read_text().splitlines() if line.startswith("Gemm")]


def test_a_save_undoes_neither_what_another_process_measured_again_nor_what_it_forgot(
    make_context: MakeContext, backend: ScriptedBackend, problem: GemmProblem, tmp_path: Path
) -> None:
    path, signature = tmp_path / "tunableop_results0.csv", signature_of(problem)
    make_context().resolve(problem, backend)
    better = ScriptedBackend({scripted_kernel(1): 1.0, scripted_kernel(2): 0.5, FASTEST: 0.1})
    reader, other = make_context(), make_context(on=better)
    reader.resolve(problem, backend)
    other.forget(*signature)
    other.resolve(problem, better)
    assert winners(path) == [FASTEST]
    assert reader.write_file()
    assert winners(path) == [FASTEST]
    assert reader.write_file(str(path))
    assert winners(path) == [FASTEST]
    other.forget(*signature)
    assert reader.write_file()
    reader.save_results("0", str(path))
    reader.close()
    assert winners(path) == []


@pytest.mark.parametrize("name", [None, "shared.csv"])
def test_devices_that_share_a_file_put_all_of_it_back_when_it_is_gone(
    backend: ScriptedBackend, problem: GemmProblem, tmp_path: Path, name: Any
) -> None:
    second = Alike({scripted_kernel(1): 1.0}, device="1")
    on_second = GemmProblem(dtype=problem.dtype, m=problem.m, n=problem.n, k=problem.k, device="1")

    def context() -> TuningContext:
        made = TuningContext(
            environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend, "1": second}
        )
        made.set_filename("shared.csv")
        return made

    first, again = context(), context()
    path = tmp_path / "shared.csv"
    first.resolve(problem, backend)
    again.resolve(problem, backend)
    # The second device of one process reads more than its first has read.
    first.resolve(on_second, second)
    again.resolve(on_second, second)
    assert again.stats()["measured"] == 0
    path.unlink()
    assert again.write_file(name)
    assert sorted(winners(path)) == [scripted_kernel(1), scripted_kernel(2)]
