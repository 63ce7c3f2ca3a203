"""What a context answers that nothing can be changed in: one refusal for each change that a service knows."""

from contextlib import AbstractContextManager
from typing import NoReturn

from tensorplay.errors import SettingError, TensorPlayError
from tensorplay.gemm import GemmProblem
from tensorplay.runtime.merge_report import MergeReport
from tensorplay.runtime.settings import Origin

__all__ = ["Unchanging"]

_WHY = "recorded files are shown, and never written"


class Unchanging:
    """Refuses every change, by `TensorPlayError`."""

    def change_setting(self, name: str, value: object, *, origin: Origin = "api") -> NoReturn:
        """Raise `SettingError`."""
        del value, origin
        raise SettingError(f"{name} cannot be changed: recorded files are shown, and no process that multiplies")

    def configure(self, **settings: object) -> AbstractContextManager[None]:
        """Raise `SettingError`."""
        self.change_setting(", ".join(settings), None)

    def write_file(self) -> bool:
        """Return False: nothing is written."""
        return False

    def forget(self, op: str, params: str) -> NoReturn:
        """Raise `TensorPlayError`."""
        raise TensorPlayError(f"{op},{params} cannot be changed: {_WHY}")

    def override(self, op: str, params: str, kernel: str) -> NoReturn:
        """Raise `TensorPlayError`."""
        del kernel
        self.forget(op, params)

    def withdraw_override(self, op: str, params: str) -> NoReturn:
        """Raise `TensorPlayError`."""
        self.forget(op, params)

    def pin_winner(self, op: str, params: str) -> NoReturn:
        """Raise `TensorPlayError`."""
        self.forget(op, params)

    def unpin_winner(self, op: str, params: str) -> NoReturn:
        """Raise `TensorPlayError`."""
        self.forget(op, params)

    def forget_untuned(self, op: str, params: str) -> NoReturn:
        """Raise `TensorPlayError`."""
        self.forget(op, params)

    def reresolve(self) -> NoReturn:
        """Raise `TensorPlayError`."""
        raise TensorPlayError(f"nothing is resolved here: {_WHY}")

    def forget_all(self) -> NoReturn:
        """Raise `TensorPlayError`."""
        raise TensorPlayError(f"nothing can be changed: {_WHY}")

    def forget_all_untuned(self) -> NoReturn:
        """Raise `TensorPlayError`."""
        self.forget_all()

    def clear_rejections(self) -> NoReturn:
        """Raise `TensorPlayError`."""
        self.forget_all()

    def load_results(self, device: str, path: str, data: bytes, *, overwrite: bool = False) -> MergeReport:
        """Raise `TensorPlayError`."""
        del device, path, data, overwrite
        self.forget_all()

    def save_results(self, device: str, path: str) -> NoReturn:
        """Raise `TensorPlayError`."""
        del device, path
        self.forget_all()

    def tune(self, problem: GemmProblem) -> NoReturn:
        """Raise `TensorPlayError`."""
        raise TensorPlayError(f"{problem} cannot be measured here; run `tensorplay tune` with the untuned file")

    def measure_beside(self, problem: GemmProblem, *, again: bool = False) -> NoReturn:
        """Raise `TensorPlayError`."""
        del again
        self.tune(problem)
