"""How rows fill their space: how many directions they use and how evenly they lie on the sphere."""

import math
from typing import Any

import torch
from torch import Tensor

from ..objectives.hypersphere import uniformity

ROWS = 2048  # of a table, for what looks at pairs


def effective_rank(rows: Tensor) -> float:
    """The exponential entropy of the singular values, D for the identity, 1 on a line, 0 for zeros: [N, D]

    exp(-sum p log p), p = singular values over their sum, rows not centred
    Roy, Vetterli, EUSIPCO 2007
    """
    rows = rows.double()
    if not bool(rows.isfinite().all()):
        return math.nan
    squares = torch.linalg.eigvalsh(rows.T @ rows).clamp_min(0.0)  # [D]
    values = torch.where(squares > 1e-12 * squares.max(), squares, 0.0).sqrt()  # beyond it is rounding
    if not values.sum() > 0:
        return 0.0
    return float(torch.special.entr(values / values.sum()).sum().exp())


def spread(rows: Tensor) -> dict[str, Any]:
    """What a table of states or items does with its space: [N, D]"""
    draw = torch.Generator().manual_seed(0)
    some = rows[torch.randperm(len(rows), generator=draw)[:ROWS]].float()
    return {
        "rows": len(rows),
        "dim": rows.shape[1],
        "effective_rank": effective_rank(rows),
        "uniformity": float(uniformity(some)) if len(some) > 1 else 0.0,
    }
