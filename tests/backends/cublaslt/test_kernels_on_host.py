"""Kernels of our own, compiled for the host and run under its sanitizers, on the very arguments they are launched with.

What would be an illegal or misaligned address on a GPU is seen here by the address and undefined-behaviour sanitizers.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.cublaslt import epilogue, fill, gemv, gemv_source
from tensorplay.backends.cublaslt.host_copy import storage_dtype, widened
from tensorplay.backends.cublaslt.reference import activated
from tensorplay.backends.host.layout import Layout, left_layout, out_layout, right_layout
from tensorplay.gemm import DType, GemmProblem, dtype_of_name
from tensorplay.measure.check_operands import Sizes

FOLDER = Path(__file__).parent / "on_host"
SOURCES = {"fill": fill.SOURCES, "epilogue": epilogue.SOURCES, "gemv": gemv_source.SOURCES}
KERNELS = {
    "fill": ("fill_{}",),
    "epilogue": ("addend_{}", "activate_{}"),
    "gemv": ("rows_{}", "columns1_{}", "columns2_{}", "columns8_{}"),
}
# Instructions that the kernels write out, and what stands for them.
INSTRUCTIONS = {
    "cvt.f32.f16 %0, %1;": "half_to_float",
    "cvt.rn.f16.f32 %0, %1;": "float_to_half",
    "cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;": "float_to_e4m3",
    "cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;": "float_to_e5m2",
}
ASSEMBLY = re.compile(r'asm\("([^"]+)" : "=[fh]"\(([^;]+?)\) : (?:"f"\(0\.0f\), )?"[fh]"\(([^;]+)\)\);')


def for_the_host(source: str) -> str:
    """Return the source with calls for its instructions."""
    text = ASSEMBLY.sub(lambda match: f"{match[2]} = {INSTRUCTIONS[match[1]]}({match[3]});", source)
    assert "asm" not in text
    return text


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the emulator with all kernels in it, built."""
    if which("gcc") is None or which("g++") is None:
        pytest.skip("there is no gcc or g++")
    folder = tmp_path_factory.mktemp("emulator")
    parts, entries = [], []
    for group, sources in SOURCES.items():
        for name, source in sources.items():
            parts.append(f"namespace {group}_of_{name} {{\n{for_the_host(source)}\n}}\n#undef COLUMNS\n#undef GEMV\n")
            for pattern in KERNELS[group]:
                kernel = pattern.format(name)
                together = str(group == "gemv").lower()
                entries.append(f'{{"{kernel}", kernel({group}_of_{name}::{kernel}, {together})}}')
    (folder / "kernels.inc").write_text("".join(parts) + f"#define KERNELS {', '.join(entries)}\n")
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O0", "-w"]
    for compiler, options, source, out in (
        ("gcc", [*sanitizers, "-c"], "convert.c", "convert.o"),
        (
            "g++",
            ["-std=c++17", *sanitizers, f"-I{folder}", "-pthread", str(folder / "convert.o")],
            "emulator.cpp",
            "run",
        ),
    ):
        done = subprocess.run(
            [compiler, str(FOLDER / source), *options, "-o", str(folder / out)],
            capture_output=True,
            text=True,
            check=False,
        )
        if "libasan" in done.stderr or "libubsan" in done.stderr:
            pytest.skip("there are no sanitizers")
        assert done.returncode == 0, done.stderr[:4000]
    return folder / "run"


class Host:
    """Stands for the device: hands out addresses, takes launches down, and runs them all at once."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.commands: list[str] = []
        self._program = program
        self._folder = folder
        self._sizes: dict[str, tuple[Any, ...]] = {}
        self._count = 0

    def memory(self, stored: NDArray[Any], shift: int = 0) -> int:
        """Return an address that is `shift` behind a multiple of 16."""
        self._count += 1
        file = self._folder / f"in{self._count}"
        file.write_bytes(stored.tobytes())
        self.commands.append(f"buffer {self._count} {shift} {file}")
        return (self._count << 32) + shift

    def stored(self, address: int) -> Path:
        """Return the file that will hold what is at the address after the launches so far."""
        number = address >> 32
        file = self._folder / f"out{number}_{len(self.commands)}"
        self.commands.append(f"store {number} {file}")
        return file

    def kernel(self, _ordinal: int, _source: str, name: str, parameters: Sequence[Any]) -> Any:
        """Stand for `nvrtc.kernel`."""
        self._sizes[name] = tuple(parameters)

        def launch(grid: Sequence[int], block: Sequence[int], _stream: int, *arguments: Any) -> None:
            words = []
            for kind, argument in zip(parameters, arguments, strict=True):
                value = kind(argument).value or 0
                is_address = kind.__name__ == "c_void_p" and value
                words.append(
                    str(value >> 32) if is_address else value.hex() if isinstance(value, float) else str(value)
                )
            self.commands.append(" ".join(["launch", name, *map(str, (*grid, *block)), *words]))

        return SimpleNamespace(launch=launch)

    def run(self) -> None:
        """Do what was taken down; fails where a sanitizer sees something, or a parameter has another size."""
        file = self._folder / "commands"
        file.write_text("\n".join([*self.commands, *(f"sizes {name}" for name in self._sizes)]))
        done = subprocess.run([self._program, file], capture_output=True, text=True, timeout=50, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        for line, (name, parameters) in zip(done.stdout.splitlines(), self._sizes.items(), strict=True):
            assert list(map(int, line.split())) == [np.dtype(kind).itemsize for kind in parameters], name


@pytest.fixture
def host(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a stand-in that the launching code takes for the device."""
    made = Host(program, tmp_path)
    for module in (fill, epilogue, gemv):
        monkeypatch.setattr(module, "kernel", made.kernel)
    # One multiprocessor: then few results are many.
    monkeypatch.setattr(gemv, "device", lambda _ordinal: SimpleNamespace(multiprocessors=1))
    monkeypatch.setattr(gemv, "on_device", lambda _ordinal, launch: launch)
    return made


def named(name: str) -> DType:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return dtype


def inside(layout: Layout) -> NDArray[np.intp]:
    """Return where the elements lie, as batch x rows x columns; all else is between them."""
    batch, row, column = np.ogrid[: layout.batch, : layout.rows, : layout.columns]
    return np.asarray(batch * layout.stride + row * layout.ld + column)


def stored_as(values: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Return the numbers as they are stored, rounded."""
    if dtype.name == "bfloat16":
        words = values.astype(np.float32).view(np.uint32)
        return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)
    return values.astype(storage_dtype(dtype))


def random_operand(rng: np.random.Generator, dtype: DType, layout: Layout) -> NDArray[Any]:
    """Return an operand as it is stored, what is between its rows not a number."""
    values = rng.uniform(-1, 1, layout.elements) + (1j * rng.uniform(-1, 1, layout.elements) if dtype.is_complex else 0)
    gaps = np.ones(layout.elements, bool)
    gaps[inside(layout)] = False
    values[gaps] = np.nan
    return stored_as(values, dtype)


def wide(stored: NDArray[Any], dtype: DType) -> NDArray[Any]:
    return widened(stored, dtype).astype(np.complex128 if dtype.is_complex else np.float64)


def read(file: Path, dtype: DType) -> NDArray[Any]:
    return wide(np.fromfile(file, storage_dtype(dtype)), dtype)


def split_mix(places: NDArray[Any], seed: int) -> NDArray[np.float64]:
    z = places.astype(np.uint64) + np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    uniform: NDArray[np.float64] = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0
    return uniform


@pytest.mark.parametrize(
    ("most_blocks", "sizes"), [(1, fill.UNIFORM), (4096, Sizes(16.0, 32.0)), (3, Sizes(-7.0, -7.0))]
)
def test_fills_write_each_element_and_nothing_else(
    host: Host, monkeypatch: pytest.MonkeyPatch, most_blocks: int, sizes: Sizes
) -> None:
    monkeypatch.setattr(fill, "_MOST_BLOCKS", most_blocks)
    results = []
    for name in (*fill.SOURCES, "tf32", "complex64", "complex128"):
        for layout in (Layout(1, 1, 1, 1, 1), Layout(2, 9, 37, 40, 375)):
            dtype = named(name)
            address = host.memory(np.full(layout.elements * dtype.itemsize, 0xFF, np.uint8), dtype.itemsize % 16)
            fill.fill(0, 0, address, dtype, layout, 3 << 40, sizes)
            results.append((dtype, layout, host.stored(address)))
    host.run()
    for dtype, layout, file in results:
        parts = 2 if dtype.is_complex else 1
        found = read(file, dtype).view(np.float64)
        scaled = Layout(layout.batch, layout.rows, layout.columns * parts, layout.ld * parts, layout.stride * parts)
        places = inside(scaled)
        uniform = split_mix(places, 3 << 40)
        wanted = (sizes.low + (sizes.high - sizes.low) * np.abs(uniform)) * np.where(uniform < 0, -1, 1)
        error = np.abs(found[places] - wanted)
        # Below the smallest normal number of FP8 steps are equal.
        assert (error <= dtype.unit_roundoff * np.abs(found[places]) + (2.0**-10 if dtype.itemsize == 1 else 0)).all()
        assert np.isnan(np.delete(found, places.ravel())).all()


@pytest.mark.parametrize("name", epilogue.SOURCES)
def test_addends_and_activations_write_each_element_and_nothing_else(
    host: Host, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(epilogue, "_MOST_BLOCKS", 2)
    dtype, layout, rng = named(name), Layout(2, 9, 37, 40, 375), np.random.default_rng(0)
    flat = Layout(1, 1, layout.columns, layout.columns, layout.columns)
    places, shift, results = inside(layout), dtype.itemsize % 16, []
    for has_c, has_bias, beta in ((1, 1, -0.5), (1, 0, 2.0), (0, 1, 0.0), (1, 1, 2 - 1j if dtype.is_complex else 1.0)):
        c, bias = random_operand(rng, dtype, layout), random_operand(rng, dtype, flat)
        out = host.memory(np.full_like(c, 0), shift)
        c_at, bias_at = (host.memory(each, shift) if has else 0 for each, has in ((c, has_c), (bias, has_bias)))
        epilogue.addend_writer(0, dtype, layout)(out, c_at, bias_at, beta, 0)
        expected = (wide(c, dtype)[places] * beta if has_c else 0) + (wide(bias, dtype) if has_bias else 0)
        results.append((host.stored(out), expected, 0.0))
    for activation in () if dtype.is_complex else ("relu", "gelu"):
        before = random_operand(rng, dtype, layout)
        before[places[0, 0, :2]] = stored_as(np.array([np.nan, -30.0]), dtype)
        out = host.memory(before, shift)
        epilogue.activation(0, dtype, layout, activation)(out, 0)
        results.append((host.stored(out), activated(wide(before, dtype)[places], activation), np.nan))
    host.run()
    for file, expected, between in results:
        found = read(file, dtype)
        wanted, roundoff = np.broadcast_to(expected, places.shape), dtype.unit_roundoff
        np.testing.assert_allclose(found[places], wanted, rtol=2 * roundoff, atol=roundoff)
        np.testing.assert_array_equal(np.delete(found, places.ravel()), between)


def vectors(name: str) -> Iterator[GemmProblem]:
    """Yield products that take every kernel: few and many results, whole and broken vectors, padded and odd places."""
    for results, length in ((1, 1), (3, 300), (9, 64), (304, 5), (301, 40)):
        for is_row, transposed, padding, alignment in (
            *((row, transposed, 0, 16) for row in (True, False) for transposed in (True, False)),
            (True, True, 8, 16), (False, False, 3, 2), (True, False, 4, 4), (False, True, 7, 2), (True, False, 0, 2),
        ):  # fmt: skip
            m, n = (1, results) if is_row else (results, 1)
            plain = GemmProblem(
                dtype=named(name), m=m, n=n, k=length, device="0", transpose_left=transposed,
                transpose_right=transposed, alignment=alignment, accumulate=True,
            )  # fmt: skip
            if not padding:
                yield plain
                continue
            yield GemmProblem(
                dtype=named(name), m=m, n=n, k=length, device="0", transpose_left=transposed,
                transpose_right=transposed, alignment=alignment, accumulate=True,
                ld_left=plain.left_columns + padding, ld_right=plain.right_columns + padding, ld_out=n + padding,
            )  # fmt: skip


@pytest.mark.parametrize("name", gemv_source.SOURCES)
def test_matrix_vector_products_read_and_write_their_operands_only(host: Host, name: str) -> None:
    rng, results = np.random.default_rng(1), []
    for problem in vectors(name):
        dtype, lies = problem.dtype, (left_layout(problem), right_layout(problem), out_layout(problem))
        left, right, c = (random_operand(rng, dtype, layout) for layout in lies)
        shift = problem.alignment % 16
        addresses = [host.memory(each, shift) for each in (left, right, np.full_like(c, 0), c)]
        gemv.gemv_plan(problem).run(*addresses, 0, 0.5, -2.0, 0)
        matrices = [wide(each, dtype)[inside(layout)[0]] for each, layout in zip((left, right, c), lies, strict=True)]
        a, b = (
            each.T if turned else each
            for each, turned in zip(matrices, (problem.transpose_left, problem.transpose_right), strict=False)
        )
        results.append((problem, host.stored(addresses[2]), 0.5 * (a @ b) - 2.0 * matrices[2]))
        host.commands.append("clear")
    host.run()
    names = {command.split()[1].split("_")[0] for command in host.commands if command.startswith("launch")}
    assert names == {"rows", "columns1", "columns2", "columns8"}
    for problem, file, expected in results:
        found, places = read(file, problem.dtype), inside(out_layout(problem))[0]
        roundoff = problem.dtype.unit_roundoff
        np.testing.assert_allclose(found[places], expected, rtol=2 * roundoff, atol=roundoff, err_msg=str(problem))
        assert not np.delete(found, places.ravel()).any()
