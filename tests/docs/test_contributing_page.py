"""What CONTRIBUTING.md and the pre-commit hooks call is there."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path


def test_every_target_of_make_is_listed(root: Path, rows: Callable[..., list[list[str]]]) -> None:
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony
    listed = {row[0].strip("`").removeprefix("make ") for row in rows(text, "Command", "What it does")}
    assert listed == set(phony[1].split()) - {"demo", "test"}


def test_make_test_is_the_first_four(root: Path, rows: Callable[..., list[list[str]]]) -> None:
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    listed = [row[0].strip("`").removeprefix("make ") for row in rows(text, "Command", "What it does")]
    checks = re.search(r"^test: (.+)$", makefile, re.MULTILINE)
    assert checks
    assert checks[1].split() == listed[:4]


def test_every_hook_is_local_and_calls_a_tool_of_the_development_group(root: Path) -> None:
    text = (root / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^ *- repo: (.+)$", text, re.MULTILINE) == ["local"]
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    group = {re.split(r"[>=<]", requirement)[0] for requirement in document["dependency-groups"]["dev"]}
    tools = set(re.findall(r"entry: \.venv/bin/([\w-]+)", text))
    distributions = {"lint-imports": "import-linter"}
    assert {distributions.get(tool, tool) for tool in tools - {"python"}} <= group
    for script in re.findall(r"entry: \.venv/bin/python (\S+)", text):
        assert (root / script).is_file()


def test_the_kinds_of_fragment_are_those_of_towncrier(root: Path) -> None:
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    kinds = [kind["directory"] for kind in document["tool"]["towncrier"]["type"]]
    said = text.partition("The kinds are ")[2].partition(".\n")[0]
    assert re.findall(r"`(\w+)`", said) == kinds


def test_the_supported_pythons_are_those_of_the_package(root: Path) -> None:
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    classifiers = document["project"]["classifiers"]
    supported = [c.rpartition(" ")[2] for c in classifiers if re.fullmatch(r"Programming Language :: .* 3\.\d+", c)]
    install = (root / "docs" / "install.md").read_text(encoding="utf-8")
    assert f"Python {', '.join(supported[:-1])} or {supported[-1]}" in install
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert f"Python {supported[0]} to {supported[-1]} on Linux" in readme


def test_every_extra_has_a_row(root: Path, rows: Callable[..., list[list[str]]]) -> None:
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    install = (root / "docs" / "install.md").read_text(encoding="utf-8")
    listed = {row[0].strip("`") for row in rows(install, "Extra", "Brings")}
    assert listed == set(document["project"]["optional-dependencies"])
