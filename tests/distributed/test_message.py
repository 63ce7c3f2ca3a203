"""What the two sides say to each other arrives as it was said."""

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.distributed.message import (
    NOTHING,
    TRY,
    Request,
    Running,
    decode,
    decode_request,
    decode_running,
    encode,
    encode_request,
)
from tensorplay.gemm import Signature

REQUESTS = st.builds(
    Request,
    signature=st.builds(Signature, st.text(), st.text()),
    again=st.booleans(),
    apart=st.booleans(),
    killers=st.lists(st.text()).map(tuple),
)
RUNNING = st.builds(Running, st.lists(st.text()).map(tuple), st.none() | st.text())


@given(REQUESTS)
def test_a_request_is_one_line_that_is_read_back(request: Request) -> None:
    line = encode_request(request)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert decode_request(line) == request


@given(RUNNING)
def test_so_is_what_runs(running: Running) -> None:
    line = encode(event=TRY, **running._asdict())
    assert line.count(b"\n") == 1
    assert decode_running(decode(line)) == running


def test_nothing_blames_nobody() -> None:
    assert Running(kernels=(), culprit=None) == NOTHING
