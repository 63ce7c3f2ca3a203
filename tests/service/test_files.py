"""Files over REST: only ours, only by name, loaded and saved with a report, and nothing else of a folder or disk."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service.result_files import MOST_FILE_BYTES
from tensorplay.testing import scripted_kernel

FAST, SLOW = scripted_kernel(2), scripted_kernel(3)
OWN = "tunableop_results0.csv"
NEW = {"If-None-Match": "*"}
Run = Callable[[int], str]


@pytest.fixture(autouse=True)
def winners(run: Run, context: TuningContext) -> None:
    run(4)
    run(5)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


def listed(client: httpx.Client) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in client.get("files").json()["items"]}


def test_only_files_that_say_that_they_are_ours_are_listed(client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "salaries.csv").write_text("name,salary\nme,1\n")
    (tmp_path / "untuned.csv").write_text("GemmTunableOp_Float32,taN_m8_n3_k5_bias0_dev0\n")
    (tmp_path / "notes.txt").write_text("Validator,A,b\n")
    (tmp_path / "a b.csv").write_text("Validator,A,b\n")
    (tmp_path / "other.csv").write_text("Validator,A,<b>\n")
    (tmp_path / "pipe.csv").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    found = listed(client)
    assert {name: each["kind"] for name, each in found.items()} == {
        OWN: "results",
        "other.csv": "results",
        "untuned.csv": "untuned",
        "tunableop_results0.explain.jsonl": "explanations",
    }
    assert (found[OWN]["device"], found[OWN]["matches"]) == ("0", True)
    assert (found["other.csv"]["matches"], found["other.csv"]["validators"]) == (False, {"A": "<b>"})
    assert str(tmp_path) not in client.get("files").text
    for name in ("salaries.csv", "notes.txt", "pipe.csv", "folder.csv"):
        assert client.get(f"files/{name}").status_code in {404, 422}


def test_a_file_is_given_to_be_saved_and_never_to_be_shown(client: httpx.Client, tmp_path: Path) -> None:
    answer = client.get(f"files/{OWN}")
    assert answer.content == (tmp_path / OWN).read_bytes()
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="{OWN}"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert answer.headers["etag"] == listed(client)[OWN]["etag"]
    assert client.get(f"files/{OWN}", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


def test_no_link_leads_out(client: httpx.Client, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.csv"
    outside.write_text("Validator,A,b\n")
    (tmp_path / "link.csv").symlink_to(outside)
    assert "link.csv" not in listed(client)
    assert client.get("files/link.csv").status_code == 404
    assert client.post("files/link.csv/load").status_code == 404
    assert code(client.post("files/link.csv/save", headers=NEW)) == (409, "not-a-file")
    assert outside.read_text() == "Validator,A,b\n"


@pytest.mark.parametrize(
    "name",
    ["..%2f..%2fetc%2fpasswd", "%2e%2e", ".hidden.csv", "a%00.csv", "a%0a.csv", "A" * 300 + ".csv", "%F0.csv"],
)
def test_a_name_that_is_a_path_names_nothing(client: httpx.Client, name: str) -> None:
    for method, path in (("GET", ""), ("POST", "/load"), ("POST", "/save")):
        answer = client.request(method, f"files/{name}{path}", headers=NEW)
        assert answer.status_code in {404, 405, 422}
        assert "passwd" not in answer.text


def test_a_load_says_what_became_of_each_winner(client: httpx.Client, context: TuningContext, tmp_path: Path) -> None:
    text = (tmp_path / OWN).read_text().replace(FAST, SLOW)
    text += f"GemmTunableOp_Float32,taN_m6_n3_k5_bias0_dev0,{SLOW},1.0\nnonsense\n"
    (tmp_path / "theirs.csv").write_text(text)
    context.pin_winner("GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_dev0")
    first = client.post("files/theirs.csv/load")
    assert first.status_code == 200, first.text
    told = first.json()
    assert {name: told[name] for name in ("merged", "replaced", "kept", "pinned", "rejected")} == {
        "merged": 1, "replaced": 0, "kept": 1, "pinned": 1, "rejected": 1,
    }  # fmt: skip
    assert told["bad_lines"][0]["line"] == len(text.splitlines())
    assert told["validators"]["SCRIPTED_VERSION"] == "1"
    again = client.post("files/theirs.csv/load", json={"overwrite": True}).json()
    assert (again["merged"], again["replaced"], again["pinned"]) == (0, 1, 1)
    kernels = {item["m"]: item["kernel"] for item in client.get("results").json()["items"]}
    assert kernels == {4: FAST, 5: SLOW, 6: SLOW}
    assert client.post("files/none.csv/load").status_code == 404
    assert client.post("files/theirs.csv/load", json={"overwrite": "yes"}).status_code == 422
    assert code(client.post("files/theirs.csv/load", json={"device": "7"})) == (409, "no-device")


def test_a_file_of_another_build_is_refused_with_every_difference(client: httpx.Client, tmp_path: Path) -> None:
    text = (tmp_path / OWN).read_text().replace("VERSION,1", "VERSION,2") + "Validator,MORE,x\n"
    (tmp_path / "theirs.csv").write_text(text)
    for answer in (
        client.post("files/theirs.csv/load"),
        client.post("files/theirs.csv/save", headers={"If-Match": "*"}),
    ):
        assert code(answer) == (409, "validators-differ")
        assert {each["name"]: (each["expected"], each["found"]) for each in answer.json()["mismatches"]} == {
            "SCRIPTED_VERSION": ("1", ["2"]),
            "MORE": (None, ["x"]),
        }
    assert (tmp_path / "theirs.csv").read_text() == text


def test_what_holds_no_winners_or_is_too_large_is_not_loaded(client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "untuned.csv").write_text("GemmTunableOp_Float32,taN_m8_n3_k5_bias0_dev0\n")
    assert code(client.post("files/untuned.csv/load")) == (409, "not-results")
    with (tmp_path / "large.csv").open("wb") as file:
        file.write((tmp_path / OWN).read_bytes())
        file.truncate(MOST_FILE_BYTES + 1)
    assert code(client.post("files/large.csv/load")) == (413, "file-too-large")
    assert code(client.get("files/large.csv")) == (413, "file-too-large")


def test_a_new_file_is_made_once(client: httpx.Client, tmp_path: Path) -> None:
    assert code(client.post("files/mine.csv/save")) == (428, "if-match-needed")
    assert code(client.post("files/mine.csv/save", headers={"If-Match": "*"})) == (412, "changed")
    made = client.post("files/mine.csv/save", headers=NEW)
    assert made.status_code == 201, made.text
    told = made.json()
    assert {name: told[name] for name in ("winners", "added", "replaced", "kept")} == {
        "winners": 2, "added": 2, "replaced": 0, "kept": 0,
    }  # fmt: skip
    assert told["size"] == (tmp_path / "mine.csv").stat().st_size
    assert made.headers["etag"] == told["etag"] == listed(client)["mine.csv"]["etag"]
    assert code(client.post("files/mine.csv/save", headers=NEW)) == (412, "exists")
    assert code(client.post("files/mine.csv/save")) == (428, "if-match-needed")


def test_a_report_counts_what_is_more_than_one_slice(
    client: httpx.Client, context: TuningContext, tmp_path: Path
) -> None:
    head, op = (tmp_path / OWN).read_text().partition("GemmTunableOp")[0], "GemmTunableOp_Float32"
    shapes = [f"taN_m{m}_n3_k5_bias0_dev0" for m in range(1, 2001)]
    ours = "".join(f"{op},{params},{FAST},0.5\n" for params in shapes[:1500])
    theirs = "".join(f"{op},{params},{SLOW},0.5\n" for params in shapes[1000:])
    context.load_results("0", "x.csv", (head + ours).encode(), overwrite=True)
    (tmp_path / "mine.csv").write_text(head + theirs + theirs[: theirs.index("\n") + 1])
    told = client.post("files/mine.csv/save", headers={"If-Match": "*"}).json()
    assert {name: told[name] for name in ("winners", "added", "replaced", "kept")} == {
        "winners": 2000, "added": 1000, "replaced": 500, "kept": 500,
    }  # fmt: skip
    again = client.post("files/mine.csv/save", headers={"If-Match": told["etag"]}).json()
    assert (again["added"], again["replaced"], again["kept"]) == (0, 0, 500)


def test_a_file_is_written_over_only_as_it_was_seen(client: httpx.Client, run: Run, tmp_path: Path) -> None:
    tag = client.post("files/mine.csv/save", headers=NEW).headers["etag"]
    path = tmp_path / "mine.csv"
    theirs = path.read_text().replace("_m4_", "_m9_")
    path.write_text(theirs)
    assert code(client.post("files/mine.csv/save", headers={"If-Match": tag})) == (412, "changed")
    run(6)
    answer = client.post("files/mine.csv/save", headers={"If-Match": listed(client)["mine.csv"]["etag"]})
    told = answer.json()
    assert (answer.status_code, told["winners"], told["added"], told["kept"]) == (200, 4, 2, 1)


def test_a_save_that_is_sent_again_is_not_done_again(client: httpx.Client, tmp_path: Path) -> None:
    headers = NEW | {"Idempotency-Key": "once"}
    first, again = (client.post("files/mine.csv/save", headers=headers) for _ in range(2))
    assert (first.status_code, first.json()) == (again.status_code, again.json()) == (201, first.json())
    assert code(client.post("files/other.csv/save", headers=headers)) == (422, "key-reused")
    refused = client.post("files/mine.csv/save", headers=NEW | {"Idempotency-Key": "other"})
    assert code(refused) == (412, "exists")
    (tmp_path / "mine.csv").unlink()
    assert client.post("files/mine.csv/save", headers=NEW | {"Idempotency-Key": "other"}).status_code == 201


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, (507, "no-space")),
        (errno.EDQUOT, (507, "no-space")),
        (errno.EROFS, (409, "not-writable")),
        (errno.ETIMEDOUT, (503, "file-locked")),
    ],
)
def test_a_disk_that_refuses_is_told_apart_and_nothing_is_left_behind(
    client: httpx.Client,
    tmp_path: Path,
    context: TuningContext,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    expected: tuple[int, str],
) -> None:
    def refuse(device: str, path: str) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(context, "save_results", refuse)
    answer = client.post("files/mine.csv/save", headers=NEW)
    assert code(answer) == expected
    assert str(tmp_path) not in answer.text
    assert not (tmp_path / "mine.csv").exists()


def test_before_a_device_was_met_nothing_can_be_saved(tmp_path: Path) -> None:
    from tensorplay.service import start
    from tensorplay.testing import ScriptedBackend

    fresh = TuningContext(environ={}, directory=tmp_path, backends={"0": ScriptedBackend({FAST: 1.0})})
    with start(context=fresh) as service:
        headers = {"Authorization": f"Bearer {service.token}"}
        with httpx.Client(base_url=service.url + "api/v1/", headers=headers) as client:
            assert client.get("files").json()["items"] == []
            assert code(client.post("files/mine.csv/save", headers=NEW)) == (409, "no-device")
    fresh.close()


def test_of_thousands_of_validators_few_are_told(client: httpx.Client, tmp_path: Path) -> None:
    validators = "".join(f"Validator,V{number},x\n" for number in range(20_000))
    (tmp_path / "bad.csv").write_text(f"Validator,SCRIPTED_VERSION,9\n{validators}")
    refused = client.post("files/bad.csv/load")
    assert code(refused) == (409, "validators-differ")
    assert len(refused.content) < 50_000
    # What this build has too says most.
    assert {"name": "SCRIPTED_VERSION", "expected": "1", "found": ["9"]} in refused.json()["mismatches"]
    tag = listed(client)["bad.csv"]["etag"]
    again = client.post("files/bad.csv/save", headers={"If-Match": tag})
    assert (code(again), len(again.content) < 50_000) == ((409, "validators-differ"), True)


def test_lines_that_are_none_are_counted_however_many(client: httpx.Client, tmp_path: Path) -> None:
    text = (tmp_path / OWN).read_text() + "garbage\n" * 3000
    (tmp_path / "bad.csv").write_text(text)
    told = client.post("files/bad.csv/load").json()
    assert (told["rejected"], len(told["bad_lines"])) == (3000, 20)
