"""The page of the command line names every command, option, key and exit code."""

import re
from collections.abc import Callable, Iterator

import click
import pytest

from tensorplay.cli import exit_code
from tensorplay.cli.bench_report import _COLUMNS
from tensorplay.cli.condition import NUMBER_KEYS, TEXT_KEYS
from tensorplay.cli.main import main
from tensorplay.cli.product_row import SORT_KEYS

Docs = Callable[[str], str]
Names = Callable[[str], list[str]]
Rows = Callable[..., list[list[str]]]


def _section(docs: Docs, command: str) -> str:
    return docs("cli.md").partition(f"## `tensorplay {command}`\n")[2].partition("\n## ")[0]


def _options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from (*parameter.opts, *parameter.secondary_opts)


def test_every_command_has_a_section(docs: Docs, rows: Rows) -> None:
    listed = re.findall(r"tensorplay (\w+)`\]", "".join(row[0] for row in rows(docs("cli.md"), "Command")))
    assert sorted(listed) == sorted(main.commands)
    assert all(_section(docs, name) for name in main.commands)


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_option_of_a_command_is_listed_and_no_other(name: str, docs: Docs, rows: Rows) -> None:
    listed = {option for row in rows(_section(docs, name), "Option") for option in re.findall(r"--\w[\w-]*", row[0])}
    assert listed == set(_options(main.commands[name]))


@pytest.mark.parametrize("name", sorted(main.commands))
def test_the_defaults_that_the_page_gives_are_those_of_the_command(name: str, docs: Docs, rows: Rows) -> None:
    options = {option: parameter for parameter in main.commands[name].params for option in parameter.opts}
    for row in rows(_section(docs, name), "Option"):
        said = re.search(r"(\w+) unless given", row[1].replace("`", "").partition(" on a terminal")[0])
        if said and row[0].strip("`").partition(" ")[0] in {"--repeats", "--iterations"}:
            assert str(options[row[0].strip("`").partition(" ")[0]].default) == said[1]


def test_every_exit_code_is_listed(docs: Docs, rows: Rows) -> None:
    listed = {int(row[0]) for row in rows(docs("cli.md"), "Code", "Means")}
    assert listed == {0, click.UsageError.exit_code, *(getattr(exit_code, name) for name in exit_code.__all__)}


def test_every_key_of_a_condition_and_of_sorting_is_named(docs: Docs, names: Names) -> None:
    section = _section(docs, "show")
    assert {*TEXT_KEYS, *NUMBER_KEYS, *SORT_KEYS} <= set(names(section))


def test_the_columns_of_bench_are_explained(docs: Docs, rows: Rows) -> None:
    listed = [row[0].strip("`") for row in rows(_section(docs, "bench"), "Column")]
    assert listed == [column.title for column in _COLUMNS]
