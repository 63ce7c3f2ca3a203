"""The products and configurations that the sweep of the skinny kernels times and checks."""  # noqa: INP001 - as the sweep

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tensorplay.backends.cublaslt.skinny.choice import promising, reasonable
from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.estimate import estimate
from tensorplay.backends.cublaslt.skinny.shape import skinny_shape
from tensorplay.gemm import GemmProblem, dtype_of_name

# Of each kind (`mma`) what the model thinks best, and a random few of the rest, to see whether it is right.
BEST, OTHERS = {0: 20, 1: 8, 2: 45}, {0: 8, 1: 4, 2: 40}
# Of each kind, run and number of warps that a question is about.
OF_EACH = 8
QUESTIONS = (
    ("bfloat16", 8, 28672, 4096, True),
    ("bfloat16", 16, 4096, 4096, False),
    ("bfloat16", 8, 28672, 4096, False),
)
FURTHER = (
    ("bfloat16", 7, 151936, 1024, True),
    ("float32", 16, 1024, 4096, True),
    ("float32", 1, 4096, 4096, True),
    ("float32", 64, 10, 784, True),
    ("bfloat16", 1, 4096, 4096, False),
    ("bfloat16", 16, 4096, 4096, False),
)


def posed(name: str, m: int, n: int, k: int, **further: Any) -> GemmProblem:
    """Return a problem; its dtype by name."""
    dtype = dtype_of_name(name)
    if dtype is None:
        raise ValueError(name)
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


def decode_problems(path: Path) -> list[GemmProblem]:
    """Return the decode shapes, and a few others."""
    rows = json.loads(path.read_text())["rows"]
    decode = [posed("bfloat16", row["m"], row["n"], row["k"], transpose_right=True) for row in rows]
    return decode + [posed(name, m, n, k, transpose_right=turned) for name, m, n, k, turned in FURTHER]


def chosen(problem: GemmProblem, generator: random.Random) -> list[Configuration]:
    """Return the configurations to time."""
    ranked, found = promising(skinny_shape(problem), multiprocessors=132, clusters=True), list[Configuration]()
    for mma, count in BEST.items():
        of_kind = [each for each in ranked if each.mma == mma]
        rest = of_kind[count : 6 * count]
        found += of_kind[:count] + generator.sample(rest, min(OTHERS[mma], len(rest)))
    return found


def asked(problem: GemmProblem, generator: random.Random) -> list[Configuration]:
    """Return the configurations that answer a question: the model's best of each kind, run, and number of warps."""
    shape, by_sort = skinny_shape(problem), dict[tuple[int, ...], list[Configuration]]()
    for each in sorted(reasonable(shape), key=lambda each: estimate(each, shape, 132)):
        if each.split == 1 or not shape.is_along:
            by_sort.setdefault((each.mma, each.vec, each.depth_warps), []).append(each)
    del generator
    return [each for (mma, *_), best in by_sort.items() if mma for each in best[:OF_EACH]]


def random_cases(generator: random.Random, count: int) -> Iterator[tuple[GemmProblem, Configuration]]:
    """Yield problems of all kinds, each with a configuration that can be."""
    while count:
        name = generator.choice(("bfloat16", "float16", "float32"))
        few, many, k = generator.randint(1, 16), generator.randint(1, 700), generator.randint(1, 3000)
        m, n = (few, many) if generator.random() < 0.6 else (max(many, 17), few)
        problem = posed(
            name, m, n, k,
            transpose_right=generator.random() < 0.6,
            transpose_left=generator.random() < 0.3,
            bias=generator.random() < 0.5,
            activation=generator.choice(("none", "relu", "gelu")),
            accumulate=generator.random() < 0.3,
            alignment=generator.choice((16, 16, 8, 4, 4)),
        )  # fmt: skip
        if generator.random() < 0.5:
            problem = replace(
                problem,
                ld_left=(problem.left_columns // 8 + 1) * 8,
                ld_right=(problem.right_columns // 8 + 1) * 8,
                ld_out=problem.n + generator.randint(1, 9),
            )
        possible = list(reasonable(skinny_shape(problem)))
        if possible:
            count -= 1
            yield problem, generator.choice(possible)
