"""Tensors of the real torch that are on the host: its own products, and none of them with tensors on a device."""

from typing import Any

import pytest

import tensorplay as package
from tensorplay.cuda import grouped_mm
from tensorplay.errors import OperandError, ShapeError

# Of torch's tensors, whose type no checker knows here.
tensorplay: Any = package
NAMES = ["mm", "bmm", "matmul", "linear", "addmm"]


def operands(torch: Any, name: str, dtype: Any = None) -> list[Any]:
    """Return what the product takes, and last what torch makes of it."""
    a, b, bias = (torch.randn(*shape).to(dtype or torch.float32) for shape in ((3, 4), (4, 5), (5,)))
    if name == "bmm":
        return [a[None], b[None], torch.bmm(a[None], b[None])]
    if name == "linear":
        return [a, b.t(), bias, torch.nn.functional.linear(a, b.t(), bias)]
    if name == "addmm":
        return [bias, a, b, torch.addmm(bias, a, b)]
    return [a, b, a @ b]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "int32"])
@pytest.mark.parametrize("name", NAMES)
def test_their_products_are_torch_s_own(torch: Any, name: str, dtype: str) -> None:
    product: Any = getattr(tensorplay, name)
    *given, expected = operands(torch, name, getattr(torch, dtype))
    for _ in range(2):
        assert torch.equal(product(*given), expected)
        out = torch.empty_like(expected)
        assert product(*given, out=out) is out
        assert torch.equal(out, expected)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_elsewhere_or_would_be_differentiated_is_refused(torch: Any, name: str) -> None:
    product: Any = getattr(tensorplay, name)
    *given, expected = operands(torch, name)
    moves: list[Any] = [
        lambda tensor: tensor.cuda(),
        lambda tensor: tensor.to("meta"),
        lambda tensor: tensor.numpy(),
        lambda tensor: tensor.to_sparse(),
        lambda tensor: tensor.clone().requires_grad_(),
    ]
    for moved in moves:
        for which in range(len(given)):
            mixed = [moved(each) if place == which else each for place, each in enumerate(given)]
            with pytest.raises(OperandError):
                product(*mixed)
        with pytest.raises(OperandError):
            product(*given, out=moved(expected))
    with torch.no_grad():
        assert torch.equal(product(*[each.clone().requires_grad_() for each in given]), expected)


def test_what_torch_refuses_is_told_as_an_operand_s_fault(torch: Any) -> None:
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    for left, right in ((a, b.double()), (a.bool(), b.bool())):
        with pytest.raises(OperandError, match="mm: torch does not multiply these tensors"):
            tensorplay.mm(left, right)
    with pytest.raises(OperandError, match="single memory location"):
        tensorplay.mm(a, b, out=torch.empty(1).expand(3, 5))
    with pytest.raises(ShapeError, match=r"matmul: \(3, 4\) and \(3, 4\) do not fit"):
        tensorplay.matmul(a, a)


def test_activations_outputs_that_are_operands_and_groups(torch: Any) -> None:
    x, weight = torch.randn(2, 3, 4), torch.randn(5, 4)
    gelu = torch.nn.functional.gelu(x @ weight.t(), approximate="tanh")
    torch.testing.assert_close(tensorplay.linear(x, weight, activation="gelu"), gelu)
    square = torch.randn(4, 4)
    expected = square @ square
    tensorplay.mm(square, square, out=square)
    torch.testing.assert_close(square, expected)
    for found, each in zip(grouped_mm([square] * 5, [weight.t()] * 5), [square @ weight.t()] * 5, strict=True):
        torch.testing.assert_close(found, each)
