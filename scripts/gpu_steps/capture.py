"""Steps: graph capture by torch."""

# The names and docstrings of steps are findings' headings, no sentences.
# ruff: noqa: BLE001

from dataclasses import replace

from gpu_steps.common import BACKEND, posed, step
from tensorplay.backends.cublaslt.backend import CublasLtBackend


@step
def capturing() -> str:
    """Capture by torch: seen, resolved, run, replayed."""
    import torch

    problem = posed("float32", 256, 256, 256)
    torch.manual_seed(0)
    left, right, out = (torch.randn(256, 256, device="cuda") for _ in range(3))
    pointers = (left.data_ptr(), right.data_ptr(), out.data_ptr())
    plan = BACKEND.first_choice(problem)
    plan.run(*pointers, stream=torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    eager = out.clone()
    out.zero_()
    findings: dict[str, object] = {"eager": BACKEND.is_capturing(torch.cuda.current_stream().cuda_stream)}
    fresh = replace(problem, m=128)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        here = torch.cuda.current_stream().cuda_stream
        findings["seen"] = BACKEND.is_capturing(here)
        findings["seen without stream"] = BACKEND.is_capturing(None)
        findings["first choice under capture"] = BACKEND.first_choice(fresh).kernel[:14]
        try:
            findings["rebuild under capture"] = CublasLtBackend().rebuild(problem, plan.kernel).kernel == plan.kernel
        except Exception as error:
            findings["rebuild under capture"] = str(error)
        plan.run(*pointers, stream=here)
    captured.replay()
    torch.cuda.synchronize()
    findings["replay bit-identical"] = bool(torch.equal(out, eager))
    plan.run(*pointers, stream=torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    findings["eager again"] = bool(torch.equal(out, eager))
    return ", ".join(f"{name}: {value}" for name, value in findings.items())
