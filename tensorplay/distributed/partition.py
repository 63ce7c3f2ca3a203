"""Which worker measures what. Pure."""

from collections.abc import Iterable

from tensorplay.gemm import Signature, parse_signature

__all__ = ["by_device"]


def by_device(signatures: Iterable[Signature]) -> dict[str, list[Signature]]:
    """Return the signatures of each device, each once, in the order given; `SignatureError` for what is none."""
    parts: dict[str, list[Signature]] = {}
    for signature in dict.fromkeys(signatures):
        parts.setdefault(parse_signature(*signature).device, []).append(signature)
    return parts
