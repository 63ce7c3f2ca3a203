"""The commands that pages show, as a shell runs them."""

import re
import shutil
import subprocess
from collections.abc import Callable
from html import unescape

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import start

PAGES = ("", "results?q=m4&sort=-m", "untuned", "rejections", "jobs", "ranks", "settings", "events", "devices")


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_every_command_is_taken_by_the_service(context: TuningContext, run: Callable[[int], str]) -> None:
    run(4)
    context.tuning_disable()
    run(5)
    with start(context=context) as service:
        first = httpx.get(f"{service.url}api/v1/results").json()["items"][0]["id"]
        commands = {
            unescape(each)
            for page in (*PAGES, f"results/{first}")
            for each in re.findall(
                r"<pre[^>]*><code>(curl.*?)</code>",
                httpx.get(service.url + page, headers={"Accept": "text/html"}).text,
                re.DOTALL,
            )
        }
        assert len(commands) > 10
        # Nothing of the person's own settings.
        environ = {"URL": service.url, "TOKEN": service.token, "PATH": "/usr/bin:/bin:/usr/local/bin"}
        for command in sorted(commands):
            shown = command.replace("curl", "curl -q -s -o /dev/null -w '%{http_code}'", 1)
            done = subprocess.run(
                ["/bin/sh", "-c", shown], env=environ, capture_output=True, text=True, timeout=20, check=True
            )
            assert done.stdout.startswith("20"), (command, done.stdout)
