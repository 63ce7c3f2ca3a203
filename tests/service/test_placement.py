"""The place that a launcher's variables tell, and the name of the job that is safe as that of a folder."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.placement import LONGEST_JOB, Placement, placement_of

TORCHRUN = {"LOCAL_RANK": "1", "RANK": "9", "LOCAL_WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "a-run"}
SLURM = {"SLURM_LOCALID": "2", "SLURM_PROCID": "6", "SLURM_JOB_ID": "77", "SLURM_NTASKS_PER_NODE": "4"}
MPI = {"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (TORCHRUN, Placement("a-run", 1, 9, 8)),
        (SLURM, Placement("77", 2, 6, 4)),
        (SLURM | {"SLURM_STEP_ID": "1"}, Placement("77-1", 2, 6, 4)),
        (MPI, Placement("parent-5", 0, 3, 2)),
        (MPI | {"PMIX_NAMESPACE": "abc"}, Placement("abc", 0, 3, 2)),
        # torchrun inside a batch job: its own variables count.
        (TORCHRUN | SLURM, Placement("a-run", 1, 9, 8)),
        ({"LOCAL_RANK": "0"}, Placement("parent-5", 0, 0, None)),
        # What torchrun says that was given no name.
        (TORCHRUN | {"TORCHELASTIC_RUN_ID": "none"}, Placement("parent-5", 1, 9, 8)),
        ({"LOCAL_RANK": "3", "RANK": "x", "SLURM_JOB_ID": "7"}, Placement("7", 3, 3, None)),
    ],
)
def test_the_variables_of_a_launcher_are_a_place(environ: dict[str, str], expected: Placement) -> None:
    assert placement_of(environ, 5) == expected


@pytest.mark.parametrize(
    "environ", [{}, {"RANK": "1"}, {"LOCAL_RANK": ""}, {"LOCAL_RANK": "-1"}, {"LOCAL_RANK": "1e3"},
                {"LOCAL_RANK": "9" * 10}, {"LOCAL_RANK": "٣"}, {"TORCHELASTIC_RUN_ID": "a"}],
)  # fmt: skip
def test_a_process_that_was_started_alone_has_none(environ: dict[str, str]) -> None:
    assert placement_of(environ, 5) is None


@given(st.text(min_size=1, max_size=300).filter(lambda name: name != "none"))
def test_a_job_is_the_name_of_a_folder_whatever_the_launcher_says(name: str) -> None:
    placement = placement_of({"LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": name}, 5)
    assert placement is not None
    assert re.fullmatch(r"[A-Za-z0-9_-]+", placement.job)
    assert len(placement.job) <= LONGEST_JOB


@pytest.mark.parametrize("other", ["a_b", "a b", "a.b", "../a/b", "a/b" * 50, "a/b\n", "\udcff"])
def test_two_names_are_never_one_job(other: str) -> None:
    jobs = {
        found.job
        for name in ("a/b", other)
        if (found := placement_of({"LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": name}, 5)) is not None
    }
    assert len(jobs) == 2


def test_the_first_of_a_host_is_number_zero_of_it() -> None:
    assert Placement("a", 0, 8).is_first
    assert not Placement("a", 1, 0).is_first
