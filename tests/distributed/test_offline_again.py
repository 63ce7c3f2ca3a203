"""Measuring anew on a device that is not the current one of its worker."""

import os
import sys
from pathlib import Path

from tensorplay.distributed.offline import OfflineTuner
from tensorplay.gemm import Signature

WORKER = """
import sys
from tensorplay.distributed.worker import main
from tensorplay.testing import ScriptedBackend, scripted_kernel

scripts = {scripted_kernel(1): 1.0, scripted_kernel(2): 0.5}
sys.exit(main(find=lambda device: ScriptedBackend(scripts, device="0")))
"""


def test_every_signature_is_measured_again_the_first_one_too(tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER, encoding="utf-8")
    signatures = [Signature("GemmTunableOp_Float32", f"taN_m{m}_n3_k5_bias0_dev1") for m in (4, 8)]
    environ = {**os.environ, "TP_TUNABLEOP_FILENAME": str(tmp_path / "winners.csv")}
    for again in (False, True):
        tuner = OfflineTuner(
            environ=environ,
            again=again,
            command=lambda device, results: [sys.executable, str(worker), device, results],
        )
        outcomes = list(tuner.tune(signatures))
        assert [(each.signature, each.measured, each.problem) for each in outcomes] == [
            (signature, True, None) for signature in signatures
        ]
    assert not (tmp_path / "winners0.csv").exists()
