"""Winners are saved over no file that something else goes to, or that holds something else."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tensorplay.runtime.context import TuningContext

NEW = {"If-None-Match": "*"}
Run = Callable[[int], str]


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


@pytest.mark.parametrize(
    "name",
    ["tunableop_untuned0.csv", "tunableop_untunedcpu.csv", "tunableop_untuned7.csv", "tunableop_results0.killers.csv"],
)
def test_what_something_else_goes_to_is_no_place_for_winners(
    client: httpx.Client, run: Run, tmp_path: Path, name: str
) -> None:
    run(4)
    refused = client.post(f"files/{name}/save", headers=NEW)
    assert code(refused) == (409, "name-taken")
    assert "choose another name" in refused.json()["detail"]
    assert not (tmp_path / name).exists()


def test_the_names_are_those_that_are_set(client: httpx.Client, run: Run, context: TuningContext) -> None:
    run(4)
    context.change_setting("untuned_filename", "/srv/wanted.csv")
    context.change_setting("verbose_filename", "lines.csv")
    for name in ("wanted0.csv", "lines.csv"):
        assert code(client.post(f"files/{name}/save", headers=NEW)) == (409, "name-taken")
    for name in ("tunableop_untuned0.csv", "wanted.csv", "wantedx.csv"):
        assert client.post(f"files/{name}/save", headers=NEW).status_code == 201


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GemmTunableOp_Float32,taN_m8_n3_k5_bias0_dev0\n", 409),
        ("name,age\nada,36\n", 409),
        ("", 200),
        ("# mine\n\n", 200),
    ],
)
def test_a_file_of_something_else_is_not_written_over(
    client: httpx.Client, run: Run, tmp_path: Path, text: str, expected: int
) -> None:
    run(4)
    (tmp_path / "mine.csv").write_text(text)
    answer = client.post("files/mine.csv/save", headers={"If-Match": "*"})
    assert answer.status_code == expected, answer.text
    if expected == 409:
        assert code(answer) == (409, "not-results")
        assert (tmp_path / "mine.csv").read_text() == text
