"""A plan's `launch`: nothing but the library's call, since each look costs a small product a percent.

In C where the extension was built, which leaves out the library's binding; else by that, where there is one device.
"""

from functools import cache
from typing import Any

from tensorplay.backends.base import Launch, Run
from tensorplay.backends.cublaslt.algorithm import Algorithm
from tensorplay.backends.cublaslt.device import device, device_count
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.library import cublaslt, driver_function, library_function
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.scalars import scalars
from tensorplay.backends.cublaslt.status import library_error, reason_of
from tensorplay.backends.cublaslt.workspace import workspaces
from tensorplay.errors import LaunchError
from tensorplay.extensions import extension

__all__ = ["launch_of", "maker"]


@cache
def maker() -> Any | None:
    """Return the type of launches in C, None where it was not built, or the library's function is not found."""
    built = extension("tensorplay.backends.cublaslt._launch")
    found = library_function("cublasLtMatmul") and driver_function("cuCtxGetCurrent")
    return built.Launch if built is not None and found else None


def launch_of(operation: Operation, algorithm: Algorithm, workspace_bytes: int, run: Run) -> Launch | None:
    """Return the launch of a product without bias and scales; `run` is the plan's, for threads on other devices."""
    make = maker()
    if make is not None:
        return _in_c(make, operation, algorithm, workspace_bytes, run)
    # Each call would have to look which device is current, which is half of what is saved.
    return _in_python(operation, algorithm, workspace_bytes) if device_count() == 1 else None


def _in_c(make: Any, operation: Operation, algorithm: Algorithm, workspace_bytes: int, run: Run) -> Launch:
    ordinal, numbers = int(operation.problem.device), scalars(operation.types.scale)

    def refused(status: int) -> None:
        error = library_error()(status)
        raise LaunchError(f"{algorithm.kernel_id} did not launch: {reason_of(error)}") from error

    def elsewhere(left: int, right: int, out: int, stream: int) -> object:
        return run(left, right, out, 0, 0, 1.0, 0.0, stream)

    launch: Launch = make(
        matmul=library_function("cublasLtMatmul"),
        arguments=(
            handle_of(ordinal),
            operation.descriptor.handle,
            numbers.one,
            operation.a.handle,
            operation.b.handle,
            numbers.zero,
            operation.c.handle,
            operation.d.handle,
            algorithm.address,
        ),
        workspace=workspaces(ordinal).address,
        workspace_bytes=workspace_bytes,
        refused=refused,
        elsewhere=elsewhere,
        current=driver_function("cuCtxGetCurrent") if device_count() > 1 else 0,
        context=int(device(ordinal).context),
        owner=operation,
    )
    return launch


def _in_python(operation: Operation, algorithm: Algorithm, workspace_bytes: int) -> Launch:
    ordinal, numbers = int(operation.problem.device), scalars(operation.types.scale)
    handle, matmul, refused = handle_of(ordinal), cublaslt().matmul, library_error()
    one, zero, workspace = numbers.one, numbers.zero, workspaces(ordinal).address
    descriptor, d = operation.descriptor.handle, operation.d.handle
    a, b, c = operation.a.handle, operation.b.handle, operation.c.handle
    chosen = algorithm.address

    def launch(left: int, right: int, out: int, stream: int) -> None:
        try:
            scratch = workspace(stream, workspace_bytes) if workspace_bytes else 0
            matmul(
                handle, descriptor, one, right, a, left, b, zero, out, c, out, d,
                chosen, scratch, workspace_bytes, stream,
            )  # fmt: skip
        except refused as error:
            # Named here so that this function keeps the algorithm; the plan's `run` keeps the operation.
            raise LaunchError(f"{algorithm.kernel_id} did not launch: {reason_of(error)}") from error

    return launch
