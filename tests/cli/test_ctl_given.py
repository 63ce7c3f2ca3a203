"""What is given to `tensorplay ctl` and no request can carry: a usage error that names the option, never a token."""

import pytest
from click.testing import CliRunner, Result

from tensorplay.cli.main import main

ID = "0123456789abcdef"
NOT_UTF8 = "\udcff"
# Nobody answers there: what is asked all the same ends with 1.
NOWHERE = "http://127.0.0.1:1"


def run_ctl(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(main, ["ctl", *arguments], env={"TENSORPLAY_URL": NOWHERE, **environ})


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("results", "-q", NOT_UTF8), "-q"),
        (("results", "--sort", NOT_UTF8), "--sort"),
        (("export", "-q", NOT_UTF8), "-q"),
        (("jobs", "--cancel", NOT_UTF8), "--cancel"),
        (("jobs", "--forget", NOT_UTF8), "--forget"),
        (("explain", "op", NOT_UTF8), "PARAMS"),
        (("override", ID, NOT_UTF8), "KERNEL"),
        (("tune", "op,params", f"op,{NOT_UTF8}"), "OP,PARAMS"),
        (("tune", "--budget", "nan"), "--budget"),
        (("tune", "--budget", "inf"), "--budget"),
        (("tune", "--budget", "1e10"), "--budget"),
        (("tune", "--timeout", "nan"), "--timeout"),
        (("set", "numerical_check", NOT_UTF8), "numerical_check"),
        (("results", "-q", "a" * 100_000), "too long"),
    ],
)
def test_what_no_request_can_carry_is_not_asked(arguments: tuple[str, ...], named: str) -> None:
    result = run_ctl(*arguments)
    assert (result.exit_code, named in result.stderr) == (2, True), result.output
    assert NOT_UTF8 not in result.stderr


@pytest.mark.parametrize(
    "url", [f"http://{NOT_UTF8}", f"http://h/{NOT_UTF8}", "http://[", "http://h:x/", "nowhere", ""]
)
def test_what_is_no_address_is_blamed_on_the_url(url: str) -> None:
    result = run_ctl("--url", url, "status")
    assert (result.exit_code, "for --url" in result.stderr) == (2, True), result.output


@pytest.mark.parametrize(
    "token", [f"secret{NOT_UTF8}", "secret\nx", "secret\r\nX-Other: 1", " secret", "secret\x7f", "sécret"]
)
def test_what_can_be_no_token_is_blamed_on_the_token_and_never_told(token: str) -> None:
    for result in (run_ctl("--token", token, "status"), run_ctl("status", TENSORPLAY_TOKEN=token)):
        assert (result.exit_code, "for --token" in result.stderr) == (2, True), result.output
        assert "cret" not in result.output


def test_the_end_of_its_line_is_no_part_of_a_token() -> None:
    result = run_ctl("--token", "secret\r\n", "status")
    assert (result.exit_code, "cannot be reached" in result.stderr) == (1, True)
    assert "secret" not in result.output
