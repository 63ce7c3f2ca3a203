"""Arrays of PyTorch."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tensorplay.errors import OperandError
from tensorplay.ops.device.kind import Kind, library
from tensorplay.ops.device.view import DeviceView

__all__ = [
    "TorchKind",
    "check_no_gradient",
    "dtype_names",
    "precision_switch",
    "quick_tf32_switch",
    "raw_stream",
    "written_note",
]

_NAMES = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2")


@cache
def dtype_names() -> dict[Any, str]:
    """Return our names of torch's data types that products are done in."""
    torch = library("torch")
    return {getattr(torch, name): name for name in _NAMES if hasattr(torch, name)}


@cache
def raw_stream() -> Any:
    """Return the function from a device's ordinal to the handle of its current stream."""
    torch = library("torch")
    direct = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return direct or (lambda ordinal: torch.cuda.current_stream(ordinal).cuda_stream)


@cache
def precision_switch() -> Any:
    """Return the function that takes `"cuda", "matmul"` and returns `"tf32"` where float32 products may be TF32.

    torch has two switches, and the older one raises where the newer says something else; the newer knows both.
    """
    torch = library("torch")
    newer = getattr(torch._C, "_get_fp32_precision_getter", None)
    return newer or (lambda *_: "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee")


@cache
def quick_tf32_switch() -> Callable[[], bool]:
    """Return the function that says the same for a third of the cost, and raises `RuntimeError` where it cannot tell.

    It is the older switch, which torch's own products look at.
    """
    torch = library("torch")
    older: Callable[[], bool] | None = getattr(torch._C, "_get_cublas_allow_tf32", None)
    switch = precision_switch()
    return older or (lambda: switch("cuda", "matmul") == "tf32")


@cache
def written_note() -> Callable[[Sequence[Any]], object]:
    """Return the function that counts tensors as changed, so that torch refuses a `backward()` over what was there.

    torch's own takes many tensors since 2.5, and one before.
    """
    torch = library("torch")
    try:
        many: Callable[[Sequence[Any]], object] = torch._C._increment_version
        many((torch.empty(0),))
    except (TypeError, AttributeError):
        one = getattr(torch.autograd.graph, "increment_version", None)
        return len if one is None else lambda results: [one(result) for result in results]
    return many


def check_no_gradient(*tensors: Any) -> None:
    """Raise `OperandError` when torch would be expected to differentiate: these products record no gradient."""
    if library("torch").is_grad_enabled() and any(tensor.requires_grad for tensor in tensors if tensor is not None):
        raise OperandError(
            "an operand requires grad, and this product would not be differentiated; call it under torch.no_grad(), "
            "or on tensor.detach()"
        )


class TorchKind(Kind):
    """Tensors of torch, on its current stream."""

    name = "torch"

    def is_on_device(self, array: Any) -> bool:
        """Return whether it is a CUDA tensor."""
        return bool(array.is_cuda)

    def plain(self, array: Any) -> Any:
        """Return the tensor with its lazy conjugation and sign carried out; dense layouts only."""
        torch = library("torch")
        own = type(array).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
        if own or array.layout is not torch.strided:
            raise OperandError(
                f"an operand is a {type(array).__name__} of layout {array.layout}, whose values are not in one dense "
                "memory; allowed: plain tensors"
            )
        check_no_gradient(array)
        return array.resolve_conj().resolve_neg() if array.is_conj() or array.is_neg() else array

    def view(self, array: Any) -> DeviceView:
        """Read a tensor by its attributes, which is what is fastest."""
        device = array.get_device()
        name = dtype_names().get(array.dtype) or str(array.dtype).removeprefix("torch.")
        pointer = array.data_ptr()
        return DeviceView(pointer, tuple(array.shape), array.stride(), name, device, raw_stream()(device))

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a tensor of torch's caching allocator."""
        return like.new_empty(shape, dtype=getattr(library("torch"), dtype))

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a tensor of zeros."""
        return like.new_zeros(shape, dtype=getattr(library("torch"), dtype))

    def dense(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return a copy, also of what is dense already."""
        torch = library("torch")
        return array.detach().expand(shape).clone(memory_format=torch.contiguous_format)

    def assign(self, out: Any, value: Any) -> None:
        """Copy by torch, which refuses an output whose elements share memory."""
        with library("torch").no_grad():
            out.copy_(value)

    def note_written(self, results: Sequence[Any]) -> None:
        """Count them as changed."""
        written_note()(results)

    def allows_tf32(self) -> bool:
        """Return what `torch.backends.cuda.matmul` says."""
        return bool(precision_switch()("cuda", "matmul") == "tf32")
