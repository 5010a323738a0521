"""How well the items that followed were ranked: functions of scores, each the mean over the places asked."""

import torch
import torch.nn.functional as F
from torch import Tensor


def _mean(values: Tensor, asked: Tensor) -> Tensor:
    """The mean over marked places; 0 where none is: [...], [...] -> []"""
    return torch.where(asked, values, 0.0).sum() / asked.sum().clamp(min=1)


def binary(chosen: Tensor, rejected: Tensor, asked: Tensor) -> Tensor:
    """-log sigmoid(s+) - log sigmoid(-s-), one negative each: [...], [...], [...] -> []"""
    return _mean(F.softplus(-chosen.float()) + F.softplus(rejected.float()), asked)


def generalised_binary(chosen: Tensor, rejected: Tensor, asked: Tensor, *, beta: float) -> Tensor:
    """(beta softplus(-s+) + sum softplus(s-)) / (n + 1): [...], [..., n], [...] -> []

    Petrov, Macdonald, RecSys 2023 (gSASRec), arXiv 2308.07192
    """
    losses = beta * F.softplus(-chosen.float()) + F.softplus(rejected.float()).sum(-1)
    return _mean(losses / (rejected.shape[-1] + 1), asked)


def sampled_softmax(chosen: Tensor, rejected: Tensor, asked: Tensor) -> Tensor:
    """-log softmax of the target among itself and n others: [...], [..., n], [...] -> []"""
    return _mean(F.softplus(rejected.float().logsumexp(-1) - chosen.float()), asked)
