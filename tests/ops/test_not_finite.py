"""A factor of zero loses no NaN and no infinity, whatever kernel was recorded for the product."""

from pathlib import Path

import numpy as np
import pytest

import tensorplay
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, dtype_of_word, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

ZERO = np.zeros((1, 1), np.float32)
ROW = np.array([[np.nan, np.inf, 1, 2]], np.float32)
SIGNATURE = signature_of(GemmProblem(dtype=dtype_of_word("Float32"), m=1, n=4, k=1))
LOSES = "host_numpy_dot1"

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")


def test_one_number_times_a_row_or_a_column_is_numpy_s_on_the_measuring_call_and_on_every_hit(
    tuning: TuningContext,
) -> None:
    for _ in range(3):
        np.testing.assert_array_equal(tensorplay.mm(ZERO, ROW), [[np.nan, np.nan, 0, 0]])
        np.testing.assert_array_equal(tensorplay.mm(ROW.T, ZERO)[:, 0], [np.nan, np.nan, 0, 0])
        np.testing.assert_array_equal(tensorplay.linear(ROW.T, ZERO)[:, 0], [np.nan, np.nan, 0, 0])
    assert tuning.stats()["measured"] == 2


def test_a_winner_that_an_older_release_recorded_is_replaced(tuning: TuningContext, tmp_path: Path) -> None:
    assert tuning.write_file()
    path = tmp_path / tuning.get_filename()
    with path.open("a") as file:
        file.write(",".join((*SIGNATURE, LOSES, "0.0001")) + "\n")
    later = TuningContext(
        environ={"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "1"}, directory=tmp_path
    )
    with use_context(later):
        np.testing.assert_array_equal(tensorplay.mm(ZERO, ROW), [[np.nan, np.nan, 0, 0]])
        (rejection,) = later.get_rejections()
        assert rejection.kernel == LOSES
        assert rejection.healed
        later.close()
    assert LOSES not in path.read_text()


def test_nobody_can_ask_for_it(tuning: TuningContext) -> None:
    with pytest.raises(KernelUnavailableError, match="NaN"):
        tuning.override(*SIGNATURE, LOSES)
