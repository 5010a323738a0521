"""Agreement without negatives: dimensions are kept apart instead of rows, and rows are not normalised."""

import torch
import torch.nn.functional as F
from torch import Tensor

from .margin import check_pairs, precise, products


def vicreg(
    a: Tensor,
    b: Tensor,
    /,
    *,
    invariance: float = 25.0,
    variance: float = 25.0,
    covariance: float = 1.0,
) -> Tensor:
    """Partners equal, every dimension spread, no two dimensions alike: [N, D], [N, D] -> []

    25 mse(a, b) + 25 mean relu(1 - std) + sum of off-diagonal cov^2 / D, the last over both views
    Bardes, Ponce, LeCun, ICLR 2022, arXiv 2105.04906

    The spread is averaged over the views, the covariance summed, as released.
    """
    check_pairs(a, b, at_least=2)
    a, b = precise(a), precise(b)
    spread = (hinge(a) + hinge(b)) / 2
    return invariance * F.mse_loss(a, b) + variance * spread + covariance * (redundancy(a) + redundancy(b))


def hinge(x: Tensor) -> Tensor:
    """How far the deviations fall short of 1, on average: [N, D] -> []"""
    return F.relu(1 - torch.sqrt(x.var(0) + 1e-4)).mean()


def redundancy(x: Tensor) -> Tensor:
    """Squared covariances between different dimensions, over D: [N, D] -> []"""
    centred = x - x.mean(0)
    covariances = products(centred.T, centred.T) / (x.shape[0] - 1)  # [D, D]
    return off_diagonal(covariances).square().sum() / x.shape[1]


def barlow_twins(a: Tensor, b: Tensor, /, *, weight: float = 0.0051) -> Tensor:
    """The cross-correlation of the views as the identity: [N, D], [N, D] -> []

    sum (1 - C_ii)^2 + weight * sum of off-diagonal C_ij^2, C = standard(a)^T standard(b) / N
    Zbontar et al., ICML 2021, arXiv 2103.03230
    """
    check_pairs(a, b, at_least=2)
    correlations = products(standard(a).T, standard(b).T) / a.shape[0]  # [D, D]
    pull = (1 - correlations.diagonal()).square().sum()
    return pull + weight * off_diagonal(correlations).square().sum()


def standard(x: Tensor) -> Tensor:
    """Columns of mean 0 and variance 1, a constant one of zeros: [N, D] -> [N, D]"""
    x = precise(x)
    centred = x - x.mean(0)
    return centred * torch.rsqrt(centred.square().mean(0) + 1e-5)


def off_diagonal(x: Tensor) -> Tensor:
    """The same with zeros on the diagonal: [D, D] -> [D, D]"""
    return x.masked_fill(torch.eye(x.shape[0], dtype=torch.bool, device=x.device), 0.0)
