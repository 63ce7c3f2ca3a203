from pathlib import Path

import pytest

from tensorplay.backends.host.machine import cpu_model, free_memory_bytes, private_cache_bytes, usable_cpus
from tensorplay.database.record import Validator, check_validator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC  9654\n\nmodel name\t: Another\n", "AMD EPYC 9654"),
        ("model name\t: Intel(R) Xeon(R), 2 GHz\n", "Intel(R) Xeon(R), 2 GHz"),
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", " implementer 0x41 part 0xd0c"),
        ("CPU part\t: 0xd0c\n", " implementer unknown part 0xd0c"),
    ],
)
def test_the_processor_is_named_as_linux_names_it(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    assert cpu_model(file).endswith(expected)


def test_a_system_that_does_not_name_its_processor_still_has_a_name_for_a_file(tmp_path: Path) -> None:
    hostile = tmp_path / "cpuinfo"
    hostile.write_bytes(b"\xff\xfe\0model name: \0\r\n")
    for file in (tmp_path / "missing", tmp_path, hostile):
        check_validator(Validator("HOST_CPU", f"{cpu_model(file)}, 2 cores"))


def test_usable_processors_are_those_that_this_process_may_run_on() -> None:
    assert usable_cpus() >= 1


def cache_folder(tmp_path: Path, *caches: tuple[str, str]) -> Path:
    for index, (level, size) in enumerate(caches):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("size", "expected"),
    [("1024K", 1 << 20), ("2M", 2 << 20), ("512", 512), ("", 1 << 20), ("manyK", 1 << 20), ("0K", 1 << 20)],
)
def test_the_private_cache_is_the_second_level(tmp_path: Path, size: str, expected: int) -> None:
    assert private_cache_bytes(cache_folder(tmp_path, ("1", "32K"), ("2", size), ("3", "32768K"))) == expected


def test_a_system_that_does_not_tell_its_caches_has_a_usual_one(tmp_path: Path) -> None:
    assert private_cache_bytes(tmp_path / "missing") == 1 << 20
    assert private_cache_bytes(cache_folder(tmp_path, ("1", "32K"))) == 1 << 20


def test_free_memory_is_what_linux_says_within_the_containers_limit(tmp_path: Path) -> None:
    info, group = tmp_path / "meminfo", tmp_path / "group"
    info.write_text("MemTotal:  4000 kB\nMemAvailable:    2000 kB\n")
    assert free_memory_bytes(info, group) == 2000 << 10
    group.mkdir()
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("100\n")
    assert free_memory_bytes(info, group) == 2000 << 10
    (group / "memory.max").write_text("1100\n")
    assert free_memory_bytes(info, group) == 1000
    (group / "memory.current").write_text("2000\n")
    assert free_memory_bytes(info, group) == 0


def test_a_system_that_does_not_tell_its_memory_has_a_usual_amount(tmp_path: Path) -> None:
    assert free_memory_bytes(tmp_path / "missing", tmp_path / "missing") == 4 << 30
