"""Finding and naming the library, without a device."""

from pathlib import Path

import pytest

from tensorplay.backends.cublaslt import library


def test_asking_whether_a_gpu_can_be_used_answers_in_words_or_none() -> None:
    reason = library.available()
    assert reason is None or (reason and "\n" not in reason)


def test_a_missing_package_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "find_spec", lambda _name: None)
    reason = library.available()
    assert reason is not None and "cuda-bindings" in reason and "pip install" in reason


def test_a_broken_parent_package_is_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(library, "find_spec", broken)
    assert "not installed" in (library.available() or "")


def test_a_driver_that_cannot_be_loaded_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "find_spec", lambda name: name)
    monkeypatch.setattr(library, "_DRIVER", "libnosuchdriver.so.1")
    assert "no NVIDIA driver" in (library.available() or "")


def test_the_four_part_version_is_read_from_the_files_real_name(tmp_path: Path) -> None:
    real = tmp_path / "libcublasLt.so.13.1.0.3"
    real.write_bytes(b"library")
    link = tmp_path / "libcublasLt.so.13"
    link.symlink_to(real)
    assert library._version_in_name(link) == "13.1.0.3"


def test_two_builds_of_the_same_size_have_different_fingerprints(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("first", "second", "again")]
    for file, content in zip(files, (b"a" * 3_000_000, b"a" * 2_999_999 + b"b", b"a" * 3_000_000), strict=True):
        file.write_bytes(content)
    first, second, again = map(library._fingerprint, files)
    assert first == again != second
    assert first.startswith("3000000-")


def test_the_identity_never_holds_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "libcublasLt.so.13"
    file.write_bytes(b"library")
    monkeypatch.setattr(library, "library_file", lambda: file)
    identity = library.library_identity.__wrapped__()
    assert identity.startswith("libcublasLt.so.13 7-")
    assert str(tmp_path) not in identity
