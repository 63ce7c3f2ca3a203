"""Every link, path and variable that a page names exists, and none is of the machine it was written on."""

import re
from collections.abc import Callable
from pathlib import Path

from tensorplay.cuda import tunable
from tensorplay.errors import KernelIdError
from tensorplay.gemm import parse_kernel_id
from tensorplay.runtime.settings_table import SETTINGS

Names = Callable[[str], list[str]]

_LINK = re.compile(r"\]\((?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
_OUR_PATH = re.compile(r"(?:tensorplay|tests|docs|scripts|benchmark|web|changelog\.d)/[\w./-]*")
_MACHINE_PATH = re.compile(r"(?<![\w.~])/(?:work|home|root|Users|tmp|var|mnt|opt)/")
# Named as what is to come.
_LATER = {"tests/gpu/"}


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_somewhere(page: Path) -> None:
    for match in _LINK.finditer(page.read_text(encoding="utf-8")):
        if match["path"].startswith("https://"):
            continue
        target = page.parent / match["path"] if match["path"] else page
        assert target.exists(), match[0]
        if match["anchor"]:
            assert match["anchor"] in _anchors(target), match[0]


def test_every_path_of_the_repository_exists(page: Path, names: Names, root: Path) -> None:
    paths = {name for name in names(page.read_text(encoding="utf-8")) if _OUR_PATH.fullmatch(name)}
    assert {path for path in paths - _LATER if not (root / path).exists()} == set()


def test_every_variable_is_one_of_ours(page: Path) -> None:
    known = {variable for setting in SETTINGS for variable in setting.variables} | {"TP_TUNABLEOP_FORMAT"}
    named = set(re.findall(r"TP_TUNABLEOP_\w+", page.read_text(encoding="utf-8")))
    assert named - known == set()


def test_every_function_of_tunable_exists(page: Path) -> None:
    named = set(re.findall(r"\btunable\.(\w+)", page.read_text(encoding="utf-8"))) - {"csv", "html", "py"}
    assert named - set(tunable.__all__) == set()


def test_every_kernel_id_is_one(page: Path, names: Names) -> None:
    for name in names(page.read_text(encoding="utf-8")):
        if re.fullmatch(r"(host|lt)_[a-z0-9_]+", name):
            try:
                parse_kernel_id(name)
            except KernelIdError as error:
                raise AssertionError(str(error)) from None


def test_no_page_picture_or_script_names_a_path_of_the_machine_it_was_made_on(root: Path, pages: list[Path]) -> None:
    files = [*pages, *root.glob("docs/images/*.svg"), *root.glob("scripts/*"), root / ".pre-commit-config.yaml"]
    texts = {file: file.read_text(encoding="utf-8") for file in files if file.is_file()}
    assert [file for file, text in texts.items() if _MACHINE_PATH.search(text)] == []


def test_every_page_and_picture_is_linked_from_somewhere(root: Path, pages: list[Path]) -> None:
    linked = {
        (page.parent / match["path"]).resolve()
        for page in pages
        for match in _LINK.finditer(page.read_text(encoding="utf-8"))
        if match["path"]
    }
    ours = [*root.glob("docs/*.md"), *root.glob("docs/images/*")]
    assert [path for path in ours if path.resolve() not in linked] == []
