"""The health of a contrast: a number per anchor, out of the very scores that the loss used."""

import torch
import torch.nn.functional as F
from torch import Tensor

from .margin import Contrast


def ess(contrast: Contrast) -> Tensor:
    """The negatives' effective number over their number, 1 when all weigh the same: N anchors -> [N]

    (sum w)^2 / sum w^2 / n, w = e^s-; 0 for an anchor without negatives.
    """
    log_size = 2 * contrast.log_sum() - contrast.log_sum(2.0)
    return present(contrast, torch.exp(log_size - contrast.n_rivals.log()))


def one_minus_p(contrast: Contrast) -> Tensor:
    """1 - p+, the factor by which InfoNCE shrinks the gradient of `dcl`: N anchors -> [N]"""
    return present(contrast, torch.sigmoid(contrast.margin))


def information(contrast: Contrast) -> Tensor:
    """InfoNCE's estimate of information in nats, log K - softplus(v), never above log K: N anchors -> [N]"""
    log_k = torch.log1p(contrast.n_rivals)
    return present(contrast, log_k - F.softplus(contrast.margin))


def log_k_saturation(contrast: Contrast) -> Tensor:
    """The share of log K that the estimate has used up, 1 when it can tell no more: N anchors -> [N]"""
    return information(contrast) / torch.log1p(contrast.n_rivals)


def present(contrast: Contrast, numbers: Tensor) -> Tensor:
    """The numbers, 0 for anchors without negatives: [N] -> [N]"""
    return torch.where(contrast.met, numbers, 0 * contrast.own)
