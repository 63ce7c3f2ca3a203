"""Skinny kernels, compiled for the host and run on the very arguments they are launched with.

Each access is checked there: nothing between or behind stored rows is read, and each element is written once.
"""

import subprocess
from collections.abc import Iterator
from ctypes import c_void_p, string_at
from dataclasses import replace
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.host_copy import storage_dtype, widened
from tensorplay.backends.cublaslt.reference import activated
from tensorplay.backends.cublaslt.skinny import plan as plan_module
from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.instructions import INSTRUCTIONS
from tensorplay.backends.cublaslt.skinny.launching import Launch
from tensorplay.backends.cublaslt.skinny.plan import skinny_plan
from tensorplay.backends.cublaslt.skinny.shape import skinny_shape
from tensorplay.backends.cublaslt.skinny.source_text import source_text
from tensorplay.backends.host.layout import Layout, left_layout, out_layout, right_layout
from tensorplay.gemm import DType, GemmProblem, dtype_of_name

FOLDER = Path(__file__).parent / "on_host"
CONVERSIONS = FOLDER.parents[1] / "on_host" / "convert.c"
READABLE, WRITABLE = 1, 2
BF16, FP16, FP32 = "bfloat16", "float16", "float32"


class Case(NamedTuple):
    """One kernel, and in which operands it meets its columns and alignment."""

    name: str
    columns: int
    is_along: bool
    attributes: tuple[int, int, int, int, int, int, int]
    is_strided: bool = False
    is_swapped: bool = False
    alignment: int = 16
    out: str = ""


# mma, tile, rows, split, vec, stages, threads.
CASES = [
    Case(BF16, 1, True, (1, 16, 16, 1, 16, 4, 64)),
    Case(BF16, 8, True, (1, 32, 16, 2, 16, 2, 128)),
    Case(FP16, 9, True, (1, 48, 48, 1, 8, 1, 32), alignment=8),
    Case(BF16, 16, True, (1, 64, 32, 4, 4, 3, 64), alignment=4),
    Case(FP16, 3, True, (1, 16, 16, 1, 2, 2, 96), alignment=2),
    Case(BF16, 5, True, (1, 16, 16, 2, 16, 2, 64), is_swapped=True),
    Case(FP16, 10, True, (1, 32, 32, 1, 16, 2, 64), is_strided=True, is_swapped=True, out=FP32),
    Case(BF16, 4, True, (1, 16, 16, 8, 16, 1, 32), is_strided=True),
    Case(BF16, 8, True, (2, 32, 32, 1, 16, 2, 64)),
    Case(FP16, 16, True, (2, 32, 16, 2, 64, 3, 128)),
    Case(BF16, 3, True, (2, 24, 24, 4, 16, 1, 96), is_swapped=True),
    Case(BF16, 11, True, (2, 8, 8, 2, 32, 4, 64)),
    Case(FP16, 8, False, (1, 64, 64, 2, 16, 2, 64)),
    Case(BF16, 16, False, (1, 64, 32, 1, 8, 4, 64), alignment=8),
    Case(BF16, 2, False, (1, 32, 16, 1, 4, 1, 64), alignment=4),
    Case(FP16, 11, False, (1, 16, 16, 2, 2, 2, 64), alignment=2),
    Case(BF16, 16, False, (2, 64, 64, 2, 16, 2, 64)),
    Case(FP16, 5, False, (2, 128, 128, 1, 16, 3, 64)),
    Case(BF16, 9, False, (2, 128, 64, 1, 16, 1, 64), is_swapped=True, out=FP32),
    Case(BF16, 7, False, (1, 128, 128, 1, 16, 1, 32), is_swapped=True, is_strided=True),
    Case(BF16, 1, True, (0, 4, 4, 1, 16, 2, 64)),
    Case(FP16, 3, True, (0, 4, 2, 2, 8, 1, 128), alignment=8),
    Case(BF16, 5, True, (0, 2, 1, 1, 2, 2, 64), alignment=2, out=FP32),
    Case(FP32, 16, True, (0, 8, 4, 1, 16, 1, 64)),
    Case(FP32, 1, True, (0, 1, 1, 4, 16, 3, 64)),
    Case(FP32, 10, True, (0, 2, 2, 1, 4, 2, 32), is_strided=True, is_swapped=True, alignment=4),
    Case(FP32, 6, False, (0, 128, 128, 1, 16, 2, 64)),
    Case(FP32, 16, False, (0, 64, 32, 2, 4, 1, 64), alignment=4),
    Case(BF16, 2, False, (0, 64, 64, 1, 4, 2, 64), is_strided=True, alignment=4),
    Case(FP16, 1, False, (0, 64, 64, 2, 2, 1, 32), alignment=2),
    Case(FP32, 3, False, (0, 64, 64, 1, 8, 1, 96), is_swapped=True, alignment=8),
]


def named(name: str) -> DType:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return dtype


def row_length(least: int, case: Case) -> int:
    """Return a leading dimension above `least` whose rows are aligned to the case's class and no more."""
    unit = case.alignment // named(case.name).itemsize
    ld = (least // unit + 1) * unit
    return ld if case.alignment == 16 or ld // unit % 2 else ld + unit


def posed(case: Case, rows: int, depth: int, **further: Any) -> GemmProblem:
    rows = -(-rows // 8) * 8 if (case.attributes[0], case.is_along) == (2, False) else rows
    m, n = (rows, case.columns) if case.is_swapped else (case.columns, rows)
    weight_turned, x_turned = case.is_along != case.is_swapped, case.is_strided != case.is_swapped
    plain = GemmProblem(
        dtype=named(case.name),
        m=m,
        n=n,
        k=depth,
        device="0",
        transpose_right=x_turned if case.is_swapped else weight_turned,
        transpose_left=weight_turned if case.is_swapped else x_turned,
        alignment=case.alignment,
        out_dtype=named(case.out) if case.out else None,
        **further,
    )
    ld_left, ld_right = row_length(plain.left_columns, case), row_length(plain.right_columns, case)
    return replace(plain, ld_left=ld_left, ld_right=ld_right, ld_out=n + 3)


def problems(case: Case) -> Iterator[GemmProblem]:
    """Yield problems of whole and broken tiles and chunks, down to a depth of one; all have the same kernel."""
    tile, least = case.attributes[1], 17 if case.is_swapped else 1
    yield posed(case, tile + 16, 1)
    yield posed(case, max(least, tile), 64, bias=True, activation="gelu")
    yield posed(case, max(least, 2 * tile - 1), 331, accumulate=True, activation="relu")
    yield posed(case, least, 1030, bias=True, accumulate=True)
    yield posed(case, 2 * tile + 17, 47)


def kernels() -> dict[str, str]:
    """Return the kernels by their whole source, each with its number."""
    found: dict[str, str] = {}
    for case in CASES:
        for problem in problems(case):
            source = source_text(Configuration(*case.attributes), skinny_shape(problem))
            found.setdefault(source, f"kernel{len(found)}")
    return found


def run_compiler(compiler: str, *arguments: object) -> None:
    done = subprocess.run([compiler, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the emulator with all kernels in it, built."""
    if which("gcc") is None or which("g++") is None:
        pytest.skip("there is no gcc or g++")
    folder, parts, entries = tmp_path_factory.mktemp("emulator"), [], []
    for source, name in kernels().items():
        assert source.startswith(INSTRUCTIONS)
        body = source.removeprefix(INSTRUCTIONS).replace('extern "C"', "")
        parts.append(f"namespace of_{name} {{\n{body}\nstatic void run() {{ skinny(parsed<Arguments>()); }}\n}}\n")
        entries.append(f'{{"{name}", of_{name}::run}}')
    (folder / "kernels.inc").write_text("".join(parts) + f"#define KERNELS {', '.join(entries)}\n")
    run_compiler("gcc", "-c", "-O1", CONVERSIONS, "-o", folder / "convert.o")
    options = ("-std=c++17", "-O0", "-w", "-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{folder}")
    run_compiler("g++", *options, FOLDER / "emulator.cpp", folder / "convert.o", "-o", folder / "run")
    return folder / "run"


class Host:
    """Stands for the device: hands out addresses, takes launches down, and runs them all at once."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.commands: list[str] = []
        self._program = program
        self._folder = folder
        self._kernels = kernels()
        self._count = 0

    def memory(self, stored: NDArray[Any], places: NDArray[np.intp], marks: int, shift: int) -> int:
        """Return an address `shift` behind a multiple of 256; the elements at `places` of what is there are marked."""
        self._count += 1
        file, marked = self._folder / f"in{self._count}", self._folder / f"marks{self._count}"
        file.write_bytes(stored.tobytes())
        each = np.zeros(stored.shape, np.uint8)
        each[places] = marks
        marked.write_bytes(np.repeat(each, stored.itemsize).tobytes())
        self.commands.append(f"buffer {self._count} {shift} {file} {marked}")
        return (self._count << 32) + shift

    def stored(self, address: int) -> Path:
        """Return the file that will hold what is at the address after the launches so far."""
        file = self._folder / f"out{len(self.commands)}"
        self.commands.append(f"store {address >> 32} {file}")
        return file

    def loaded_function(self, _ordinal: int, source: str) -> str:
        """Stand for `modules.loaded_function`."""
        return self._kernels[source]

    def launch(self, name: str, *, blocks: int, threads: int, shared_bytes: int) -> Launch:
        """Stand for `overlapping_launch`."""
        size = plan_module._EACH.size + plan_module._FIXED.size

        def launch(_stream: int, parameters: int) -> tuple[int]:
            arguments = string_at(c_void_p.from_address(parameters).value or 0, size)
            self.commands.append(f"launch {name} {blocks} {self.split} {threads} {shared_bytes} {arguments.hex()}")
            return (0,)

        return launch

    split = 1

    def run(self) -> None:
        """Do what was taken down; fails where an access is wrong."""
        (file := self._folder / "commands").write_text("\n".join(self.commands))
        done = subprocess.run([self._program, file], capture_output=True, text=True, timeout=50, check=False)
        assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture
def host(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a stand-in that the launching code takes for the device."""
    made = Host(program, tmp_path)
    driver = SimpleNamespace(cuCtxGetCurrent=lambda: (0, 1), cuCtxPushCurrent=None, cuCtxPopCurrent=None)
    monkeypatch.setattr(plan_module, "overlapping_launch", made.launch)
    monkeypatch.setattr(plan_module, "driver", lambda: driver)
    monkeypatch.setattr(plan_module, "device", lambda _ordinal: SimpleNamespace(context=1, capability=(9, 0)))
    monkeypatch.setattr(plan_module, "loaded_function", made.loaded_function)
    monkeypatch.setattr(plan_module, "most_shared_bytes", lambda _ordinal: 227 << 10)
    return made


def inside(layout: Layout) -> NDArray[np.intp]:
    """Return where the elements lie; all else is between rows."""
    row, column = np.ogrid[: layout.rows, : layout.columns]
    return np.asarray(row * layout.ld + column)


def stored_as(values: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Return the numbers as they are stored, rounded."""
    if dtype.name == BF16:
        words = values.astype(np.float32).view(np.uint32)
        return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)
    return values.astype(storage_dtype(dtype))


def random_operand(rng: np.random.Generator, dtype: DType, layout: Layout) -> NDArray[Any]:
    """Return an operand as it is stored, what is between its rows not a number."""
    values = np.full(layout.elements, np.nan)
    values[inside(layout)] = rng.uniform(-1, 1, (layout.rows, layout.columns))
    return stored_as(values, dtype)


class Run:
    """One product on random operands, taken down on a host, and what it should give."""

    def __init__(
        self, host: Host, problem: GemmProblem, configuration: Configuration, rng: np.random.Generator
    ) -> None:
        self.problem = problem
        self.dtype = problem.out_dtype or problem.dtype
        shift, host.split = problem.alignment % 16, configuration.split
        layouts = (left_layout(problem), right_layout(problem))
        operands = [random_operand(rng, problem.dtype, layout) for layout in layouts]
        at = [host.memory(each, inside(lies), READABLE, shift) for each, lies in zip(operands, layouts, strict=True)]
        out = out_layout(problem)
        flat = Layout(1, 1, problem.n, problem.n, problem.n)
        c, bias = random_operand(rng, self.dtype, out), random_operand(rng, self.dtype, flat)
        shift = max(shift, self.dtype.itemsize)
        marks = WRITABLE + (READABLE if problem.accumulate else 0)
        self.address = host.memory(c, inside(out), marks, shift)
        bias_at = host.memory(bias, inside(flat), READABLE, shift) if problem.bias else 0
        alpha, beta = (0.5, -2.0) if problem.accumulate else (1.0, 0.0)
        skinny_plan(problem, configuration).run(*at, self.address, 0, bias_at, alpha, beta, 0)
        self.result = host.stored(self.address)
        host.commands.append("clear")
        left, right = (
            (wide(each, problem.dtype)[inside(lies)].T if lies.transposed else wide(each, problem.dtype)[inside(lies)])
            for each, lies in zip(operands, layouts, strict=True)
        )
        self.expected = alpha * (left @ right) + (beta * wide(c, self.dtype)[inside(out)] if problem.accumulate else 0)
        if problem.bias:
            self.expected = self.expected + wide(bias, self.dtype)
        self.expected = activated(self.expected, problem.activation)
        self.before = c

    def check(self) -> None:
        """Compare what was computed, and what was there before and had to stay."""
        stored = np.fromfile(self.result, storage_dtype(self.dtype))
        places, roundoff = inside(out_layout(self.problem)), self.dtype.unit_roundoff
        found = wide(stored, self.dtype)[places]
        atol = 2.0**-22 * self.problem.k + roundoff * 2.0**-4
        np.testing.assert_allclose(found, self.expected, rtol=2 * roundoff, atol=atol, err_msg=str(self.problem))
        np.testing.assert_array_equal(np.delete(stored, places.ravel()), np.delete(self.before, places.ravel()))


def wide(stored: NDArray[Any], dtype: DType) -> NDArray[np.float64]:
    return widened(stored, dtype).astype(np.float64)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{Configuration(*case.attributes).kernel_id}")
def test_a_kernel_reads_its_operands_only_and_writes_each_element_once(host: Host, case: Case) -> None:
    rng = np.random.default_rng(1)
    runs = [Run(host, problem, Configuration(*case.attributes), rng) for problem in problems(case)]
    host.run()
    for run in runs:
        run.check()
