"""Every setting, declared once: the documentation, command line, schema and dashboard are made from this table."""

from tensorplay.errors import SettingError
from tensorplay.runtime.numerical_check import numerical_check
from tensorplay.runtime.setting import Setting, nearest, shown
from tensorplay.runtime.setting_kind import address, boolean, choice, file_name, integer, names, number, verbosity

__all__ = ["SETTINGS", "setting_of"]

_LARGEST_MIB = 2**20
# Of every backend, since one process may use several; named here, as no backend is imported before it is needed.
_SOURCES = ("numpy", "scipy", "mkl", "cublaslt", "cublas", "skinny")

SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="enabled",
        kind=boolean(),
        default=False,
        help="Whether products look up their recorded winner. Off, dispatch is exactly the untuned behaviour.",
    ),
    Setting(
        name="tuning",
        kind=boolean(),
        default=True,
        help="Whether a product without a recorded winner is measured. Off, the library's first choice runs.",
    ),
    Setting(
        name="record_untuned",
        kind=boolean(),
        default=False,
        help="Whether signatures that ran without a recorded winner are logged to the untuned file, once each.",
    ),
    Setting(
        name="verbose",
        kind=verbosity(),
        default=0,
        help="How much is logged: 0 nothing; 1 state changes, files and rejections; 2 also the start and end of each "
        "tuning; 3 also every candidate.",
    ),
    Setting(
        name="verbose_filename",
        kind=file_name("err, out, or the path of a file, which is appended to"),
        default="err",
        help="Where the diagnostic lines go: standard error, standard output or a file.",
    ),
    Setting(
        name="max_tuning_duration_ms",
        kind=integer(),
        default=30,
        help="Ceiling of the time that one candidate is timed for, in milliseconds. 0 means no limit; of two limits "
        "the smaller wins, and one sample is always timed.",
    ),
    Setting(
        name="max_tuning_samples",
        kind=integer(),
        default=100,
        help="Ceiling of the timed samples of one candidate. 0 means no limit of yours, 200 are timed at most; of two "
        "limits the smaller wins, and one sample is always timed.",
        alias="MAX_TUNING_ITERATIONS",
    ),
    Setting(
        name="max_warmup_duration_ms",
        kind=integer(),
        default=0,
        help="Ceiling of the time that one candidate is warmed up for before it is timed, in milliseconds; 250 are "
        "the most. 0 leaves it to the measurement.",
    ),
    Setting(
        name="max_warmup_samples",
        kind=integer(),
        default=0,
        help="Ceiling of the untimed launches of one candidate before it is timed; 1000 are the most. 0 leaves it to "
        "the measurement.",
        alias="MAX_WARMUP_ITERATIONS",
    ),
    Setting(
        name="filename",
        kind=file_name("the path of a file", empty_means="the default"),
        default="",
        help="Results file; the device's ordinal is put into its name. The default is tunableop_results<device>.csv "
        "in the working directory.",
    ),
    Setting(
        name="untuned_filename",
        kind=file_name("the path of a file", empty_means="the default"),
        default="",
        help="Untuned file; the device's ordinal is put into its name. The default is tunableop_untuned<device>.csv "
        "in the working directory.",
    ),
    Setting(
        name="numerical_check",
        kind=numerical_check(),
        default="on",
        help="Whether a candidate's result is compared with the first choice's before it is timed: on takes the "
        "tolerances from the data type, atol_rtol gives an absolute and a relative one.",
    ),
    Setting(
        name="icache_flush_enabled",
        kind=boolean(),
        default=True,
        help="Whether the instruction cache is flushed between timed launches.",
        device="cuda",
    ),
    Setting(
        name="rotating_buffer_size",
        kind=integer(_LARGEST_MIB, none_means="twice the L2 cache"),
        default=None,
        help="Size of the pool that operands rotate through while they are timed, in MiB, so that the cache is cold. "
        "0 means that nothing rotates; free memory bounds it.",
    ),
    Setting(
        name="candidates",
        kind=choice("heuristic", "wide", "search"),
        default="wide",
        help="Which candidates are measured: those of the library's own heuristic, all that the sources offer, or "
        "those and neighbours of the best.",
    ),
    Setting(
        name="sources",
        kind=names(*_SOURCES),
        default=(),
        help="Providers of candidates that take part: numpy,scipy,mkl on the host and cublaslt,cublas,skinny on CUDA. "
        "Empty means all.",
    ),
    Setting(
        name="families",
        kind=choice("plan", "all"),
        default="plan",
        help="Which products are tuned: plan is single and double precision and every bias-fused product; all adds "
        "half precision without bias, strided batches, complex and FP8.",
    ),
    Setting(
        name="mode",
        kind=choice("blocking", "background"),
        default="blocking",
        help="When a product is measured: blocking measures it within its first call; background runs the first "
        "choice meanwhile, and measures when the device is idle.",
    ),
    Setting(
        name="total_tuning_seconds",
        kind=number(2**31 - 1),
        default=0.0,
        help="Time after which this process starts no further measurement, in seconds. 0 means no limit.",
    ),
    Setting(
        name="max_search_seconds",
        kind=number(2**31 - 1),
        default=3.0,
        help="Ceiling of the time that candidates=search looks for neighbours of the best, in seconds for one product. "
        "0 means no limit: it goes on until none is left.",
    ),
    Setting(
        name="min_gain",
        kind=number(10),
        default=0.01,
        help="How much faster than the first choice a winner must be, as a share of its time: 0.01 is 1 %. "
        "Half of it is enough where the budget allows five or six pairs of samples only, and all of them agree.",
    ),
    Setting(
        name="workspace_mib",
        kind=integer(_LARGEST_MIB),
        default=32,
        help="Ceiling of the scratch memory of one product, in MiB; candidates that need more do not take part.",
    ),
    Setting(
        name="deterministic",
        kind=boolean(),
        default=False,
        help="Whether kernels whose order of summation may change from run to run are left out.",
    ),
    Setting(
        name="dashboard",
        kind=address(empty_means="none"),
        default="",
        help="Where the process serves its dashboard once it multiplies or asks `tunable` for something; port 0 is one "
        "that is free. Needs the extra web; changes need a token on loopback too, that of TENSORPLAY_TOKEN or else one "
        "that is made up, and an address that others reach needs TENSORPLAY_TOKEN to be set, and the token for reading "
        "too.",
    ),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def setting_of(name: str) -> Setting:
    """Return the setting of that name; `SettingError` with the nearest name when there is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        near = nearest(name, _BY_NAME)
        hint = f"did you mean {near}?" if near else f"allowed: {', '.join(_BY_NAME)}"
        raise SettingError(f"{shown(name)} is no setting; {hint}") from None
