"""TEMP"""
from collections.abc import Iterator
from tensorplay.gemm import GemmProblem, HostKernelId
from tensorplay.backends.host.library import thread_limit, numpy_blas
MOST_OFFERED = {"heuristic": 8, "wide": 24, "search": -1}

def k(source, **o): return HostKernelId(source, tuple(o.items()))
def offers(p, breadth) -> Iterator[HostKernelId]:
    bases=[{}, {"dot":1}, {"threads":1}]
    if p.k==1: yield k("numpy", outer=1)
    yield k("numpy", dot=1)
    yield k("numpy", threads=1)
    yield k("numpy", threads=2)
    yield k("scipy")
    yield k("scipy", threads=1)
    yield k("scipy", threads=2)
    yield k("mkl", threads=1)
    yield k("mkl", threads=2)
    for b in bases:
        yield k("numpy", **b, swap=1)
        yield k("numpy", **b, packa=1)
        yield k("numpy", **b, packb=1)
        yield k("numpy", **b, packa=1, packb=1)
        for s in (1,2,3,4,8,16,32,64,128,256,512,1024,2048):
            if p.m/s<=128 and s*p.n*p.k>=10000:
                yield k("numpy", **b, rows=s)
                yield k("numpy", **b, swap=1, rows=s)
            if p.n/s<=128 and s*p.m*p.k>=10000:
                yield k("numpy", **b, cols=s)
                yield k("numpy", **b, cols=s, swap=1)
            if p.n/s<=128 and s*p.m*p.k>=10000:
                yield k("numpy", **b, rows=s, swap=1)
