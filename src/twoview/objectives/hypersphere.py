"""Alignment and uniformity on the unit sphere: what contrast optimises in the limit, said outright."""

import torch
from torch import Tensor

from .margin import check_pairs, kin, products, unit


def alignment(a: Tensor, b: Tensor, /, *, alpha: float = 2.0) -> Tensor:
    """How far partners lie from each other, 0 when they coincide: [N, D], [N, D] -> []

    mean |a - b|^alpha over unit rows
    Wang, Isola, ICML 2020, arXiv 2005.10242, eq. 4
    """
    check_pairs(a, b)
    squares = (unit(a) - unit(b)).square().sum(1)  # [N]
    apart = squares > 0  # a power below 1 has no slope at 0
    return torch.where(apart, torch.where(apart, squares, 1.0) ** (alpha / 2), squares).mean()


def uniformity(x: Tensor, /, *, t: float = 2.0, akin: Tensor | None = None) -> Tensor:
    """The log of the mean Gaussian potential of rows, 0 collapsed, -2t orthogonal: [N, D] -> []

    log mean exp(-t |x_i - x_j|^2) over pairs i < j of unit rows
    Wang, Isola, ICML 2020, arXiv 2005.10242, eq. 5
    """
    check_pairs(x, x, akin, at_least=2)
    rows = unit(x)
    lengths = rows.square().sum(1)  # [N]
    squares = lengths[:, None] + lengths[None, :] - 2 * products(rows, rows)  # [N, N]
    counted = ~kin(akin, x)
    some = counted.any()
    potentials = torch.where(counted | ~some, -t * squares, -torch.inf)
    average = torch.logsumexp(potentials.flatten(), 0) - counted.sum().clamp_min(1).to(squares.dtype).log()
    return torch.where(some, average, 0 * lengths.sum())


def align_uniform(
    a: Tensor,
    b: Tensor,
    /,
    *,
    align: float = 1.0,
    uniform: float = 1.0,
    t: float = 2.0,
    akin: Tensor | None = None,
) -> Tensor:
    """Partners together and everybody spread, weighted: [N, D], [N, D] -> []

    align * alignment(a, b) + uniform * (uniformity(a) + uniformity(b)) / 2
    Wang, Isola, ICML 2020, arXiv 2005.10242
    """
    check_pairs(a, b, akin, at_least=2)
    spread = (uniformity(a, t=t, akin=akin) + uniformity(b, t=t, akin=akin)) / 2
    return align * alignment(a, b) + uniform * spread


def direct_au(
    a: Tensor, b: Tensor, /, *, gamma: float = 1.0, t: float = 2.0, akin: Tensor | None = None
) -> Tensor:
    """Alignment of users with their items, gamma times the spread of both: [N, D], [N, D] -> []

    mean |a - b|^2 + gamma * (uniformity(a) + uniformity(b)) / 2
    Wang et al., KDD 2022 (DirectAU), arXiv 2206.12811
    """
    return align_uniform(a, b, uniform=gamma, t=t, akin=akin)
