"""Products of signal handlers and finalizers, in processes with several threads: nobody waits for ever."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

START = """
import faulthandler, itertools, os, signal, sys, threading, time
import numpy as np, tensorplay
from tensorplay import tunable
faulthandler.dump_traceback_later(40, exit=True)
wrong = []
def multiply(m, k, n=2):
    found = tensorplay.mm(np.ones((m, k)), np.ones((k, n)))
    if not (found == k).all():
        wrong.append((m, k))
multiply(2, 2)
"""

IN_A_WRITE = """
import fcntl
signal.signal(signal.SIGALRM, lambda *_: multiply(5, 5))
with open("tunableop_resultscpu.csv.lock") as lock:
    # Another writer has the file.
    fcntl.flock(lock, fcntl.LOCK_EX)
    threading.Timer(0.6, fcntl.flock, (lock, fcntl.LOCK_UN)).start()
    worker = threading.Thread(target=multiply, args=(400, 400), daemon=True)
    worker.start()
    time.sleep(0.05)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    tunable.write_file()
    worker.join()
multiply(5, 5)
"""

ALL_THE_TIME = """
count = itertools.count(3)
if "service" in sys.argv:
    import tensorplay.service
    tensorplay.service.start()
busy = []
def handler(*_):
    if not busy:
        busy.append(1)
        multiply(next(count), 3)
        busy.clear()
class Node:
    def __init__(self):
        self.itself = self
    def __del__(self):
        multiply(next(count), 6)
def other():
    while not ended:
        multiply(next(count), 4)
ended = []
thread = threading.Thread(target=other)
thread.start()
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
begin = time.monotonic()
while time.monotonic() - begin < 3:
    multiply(next(count), 5)
    if "finalizers" in sys.argv:
        Node()
        tunable.write_file()
signal.setitimer(signal.ITIMER_REAL, 0)
ended.append(1)
thread.join()
"""

END = """
measured = {params for _, params, _, _ in tunable.get_results()}
print(wrong, "taN_m5_n2_k5_bias0_devcpu" in measured or len(measured) > 2, flush=True)
# Nodes that are left would multiply while modules are taken apart.
os._exit(0)
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("program", "words"),
    [(IN_A_WRITE, ()), (ALL_THE_TIME, ()), (ALL_THE_TIME, ("service",)), (ALL_THE_TIME, ("finalizers",))],
)
def test_whoever_multiplies_in_the_middle_of_our_work_waits_for_no_other_thread(
    tmp_path: Path, program: str, words: tuple[str, ...]
) -> None:
    if words == ("service",):
        pytest.importorskip("fastapi")
    settings = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "3", "OPENBLAS_NUM_THREADS": "1"}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TP_TUNABLEOP_")} | settings
    command = (sys.executable, "-c", START + program + END, *words)
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["[] True"]), done.stderr[-3000:]
