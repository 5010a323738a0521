"""What a latent knows of its history, in nats, and how far all latents together lie from the prior.

mean KL(q(z | x) || p) = information of x and z + KL(q(z) || p)          Hoffman, Johnson 2016
q(z) is the mean of the posteriors of one batch, so no estimate but for its noise exceeds log batch.
"""

import math
from typing import Any

import torch
from torch import Tensor

from ..objectives.variational import gaussian_kl, gaussian_log_density, mmd

BATCH = 1024  # posteriors in an aggregate
SIGMAS = (0.25, 0.5, 1.0, 2.0, 4.0)  # widths of kernels, in deviations of the prior


def log_densities(z: Tensor, mean: Tensor, log_var: Tensor) -> Tensor:
    """log N(z_i; mean_j, e^log_var_j) for every pair: [N, D], [M, D], [M, D] -> [N, M]"""
    z, mean, log_var = z.double(), mean.double(), log_var.double()
    precision = torch.exp(-log_var)
    squares = z.square() @ precision.T - 2 * z @ (mean * precision).T + (mean.square() * precision).sum(1)
    return -0.5 * (z.shape[1] * math.log(2 * math.pi) + log_var.sum(1) + squares)


def log_aggregate(z: Tensor, mean: Tensor, log_var: Tensor) -> Tensor:
    """log q(z), the mean of the batch's posteriors, own ones included: [N, D], [M, D], [M, D] -> [N]"""
    return torch.logsumexp(log_densities(z, mean, log_var), 1) - math.log(len(mean))


def information(mean: Tensor, log_var: Tensor, *, seed: int = 0, batch: int = BATCH) -> dict[str, Any]:
    """Both usual estimates of the information, one without their noise, and the aggregate's own KL.

    entropy   mean(-H(q(z | x)) - log q(z))           He, Spokoyny, Neubig, Berg-Kirkpatrick, ICLR 2019
    dieng     mean KL(q(z | x) || p) - aggregate_kl   Dieng, Kim, Rush, Blei, AISTATS 2019
    sampled   mean(log q(z | x) - log q(z))           never above the ceiling; about 0 when nothing is known
    """
    mean, log_var = mean.double(), log_var.double()
    z = drawn(mean, log_var, seed)
    n_batches = math.ceil(len(z) / batch)
    parts = [part.tensor_split(n_batches) for part in (z, mean, log_var)]
    log_q = torch.cat([log_aggregate(*some) for some in zip(*parts, strict=True)])  # [C]
    own = gaussian_log_density(z, mean, log_var).sum(1)
    prior = gaussian_log_density(z, torch.zeros_like(z), torch.zeros_like(z)).sum(1)
    negative_entropy = -0.5 * (1 + math.log(2 * math.pi) + log_var).sum(1)
    aggregate_kl = (log_q - prior).mean()
    sizes = [len(some) for some in parts[0]]
    return {
        "entropy": float((negative_entropy - log_q).mean()),
        "dieng": float(gaussian_kl(mean, log_var).sum(1).mean() - aggregate_kl),
        "sampled": float((own - log_q).mean()),
        "ceiling": sum(size * math.log(size) for size in sizes) / len(z),
        "aggregate_kl": float(aggregate_kl),
    }


def discrepancy(mean: Tensor, log_var: Tensor, *, seed: int = 0) -> list[dict[str, float]]:
    """MMD of latents from the prior by width of the kernel, beside that of two samples of the prior."""
    z = drawn(mean, log_var, seed)[:BATCH].float()
    draw = torch.Generator().manual_seed(seed + 1)
    prior, other = (torch.randn(z.shape, generator=draw) for _ in range(2))
    return [
        {
            "sigma": sigma,
            "mmd": float(mmd(z, prior, sigmas=[sigma])),
            "of_the_prior": float(mmd(other, prior, sigmas=[sigma])),
        }
        for sigma in SIGMAS
    ]


def drawn(mean: Tensor, log_var: Tensor, seed: int) -> Tensor:
    """One latent for each posterior: [C, D], [C, D] -> [C, D]"""
    noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return mean + torch.exp(0.5 * log_var) * noise
