"""Every exception and warning that TensorPlay raises.

::

    TensorPlayError
    ├── SettingError            (ValueError)    a setting was given a value that is not allowed
    ├── ShapeError              (ValueError)    the operands cannot be multiplied
    ├── OperandError            (TypeError)     an operand is of a kind that no backend can run
    ├── SignatureError          (ValueError)    an op or params text is not one of ours
    ├── KernelIdError           (ValueError)    a kernel id text is not one of ours
    ├── RecordError             (ValueError)    a winner or validator that no file could hold
    ├── KernelUnavailableError                  a kernel id that this build or problem cannot run
    ├── LaunchError                             a kernel failed when it was run
    └── MeasurementError                        a measurement could not be finished
    TensorPlayWarning           (UserWarning)
    ├── SettingWarning                          a setting was ignored
    └── ResultsFileWarning                      a file was refused, or could not be read or written

All are picklable. A GEMM raises only `ShapeError` and `OperandError` (and what NumPy raises for the same
operands): whatever goes wrong while tuning is counted and logged, and the library's first choice runs.
"""

__all__ = [
    "KernelIdError",
    "KernelUnavailableError",
    "LaunchError",
    "MeasurementError",
    "OperandError",
    "RecordError",
    "ResultsFileWarning",
    "SettingError",
    "SettingWarning",
    "ShapeError",
    "SignatureError",
    "TensorPlayError",
    "TensorPlayWarning",
]


class TensorPlayError(Exception):
    """Base of every error that TensorPlay raises."""


class SettingError(TensorPlayError, ValueError):
    """A setting was given a value that is not allowed."""


class ShapeError(TensorPlayError, ValueError):
    """The operands cannot be multiplied; the message names their shapes."""


class OperandError(TensorPlayError, TypeError):
    """An operand is of a kind that no backend can run."""


class SignatureError(TensorPlayError, ValueError):
    """An op or params text is not one of ours."""


class KernelIdError(TensorPlayError, ValueError):
    """A kernel id text is not one of ours."""


class RecordError(TensorPlayError, ValueError):
    """A winner or validator holds something that a results file could not."""


class KernelUnavailableError(TensorPlayError):
    """A well-formed kernel id that this build, or this problem, cannot run; the message is the reason."""


class LaunchError(TensorPlayError):
    """A kernel failed when it was run; the message is the library's own explanation."""


class MeasurementError(TensorPlayError):
    """A measurement could not be finished."""


class TensorPlayWarning(UserWarning):
    """Base of every warning that TensorPlay issues."""


class SettingWarning(TensorPlayWarning):
    """A setting was ignored: its value does not parse, or its name is unknown."""


class ResultsFileWarning(TensorPlayWarning):
    """A results or untuned file was refused, or could not be read or written."""
