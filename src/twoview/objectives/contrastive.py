"""Contrastive objectives, each a line over the margin v; formula and source stand below the result."""

import math
from typing import TypedDict, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from .margin import Contrast, among, crowd, facing, kin


class Scoring(TypedDict, total=False):
    """How pairs are scored, as `crowd` takes it."""

    temperature: float
    similarity: str


def info_nce(
    a: Tensor,
    b: Tensor,
    /,
    *,
    temperature: float = 0.5,
    similarity: str = "cosine",
    two_way: bool = False,
    akin: Tensor | None = None,
) -> Tensor:
    """Each row of a picks its partner out of b, two-way also each of b out of a: [N, D], [N, D] -> []

    mean softplus(v) over N anchors, v = logsumexp(s-) - s+
    van den Oord, Li, Vinyals 2018 (CPC), arXiv 1807.03748
    """
    there = facing(a, b, temperature=temperature, similarity=similarity, akin=akin)
    one_way = there.mean(F.softplus(there.margin))
    if not two_way:
        return one_way
    back = among(there.scores.T, akin)
    return (one_way + back.mean(F.softplus(back.margin))) / 2


def nt_xent(
    a: Tensor,
    b: Tensor,
    /,
    *,
    temperature: float = 0.5,
    similarity: str = "cosine",
    akin: Tensor | None = None,
) -> Tensor:
    """Each row of both views picks its partner among all other rows: [N, D], [N, D] -> []

    mean softplus(v) over 2N anchors
    Chen, Kornblith, Norouzi, Hinton, ICML 2020 (SimCLR), arXiv 2002.05709
    """
    contrast = crowd(a, b, temperature=temperature, similarity=similarity, akin=akin)
    return contrast.mean(F.softplus(contrast.margin))


def flat_nce(
    a: Tensor,
    b: Tensor,
    /,
    *,
    temperature: float = 0.5,
    similarity: str = "cosine",
    with_positive: bool = False,
    akin: Tensor | None = None,
) -> Tensor:
    """A gradient that does not fade as pairs align, at a value that is always 1: [N, D], [N, D] -> []

    mean exp(v - stopgrad(v)) over 2N anchors; with_positive: softplus(v) for v
    Chen et al. 2021 (FlatNCE), arXiv 2107.01152

    The value estimates nothing, least of all information; the gradient is `dcl`'s or `nt_xent`'s.
    """
    contrast = crowd(a, b, temperature=temperature, similarity=similarity, akin=akin)
    log_odds = F.softplus(contrast.margin) if with_positive else contrast.margin
    return contrast.mean(torch.exp(log_odds - log_odds.detach()))


def dcl(
    a: Tensor,
    b: Tensor,
    /,
    *,
    temperature: float = 0.5,
    similarity: str = "cosine",
    akin: Tensor | None = None,
) -> Tensor:
    """The margin itself, the positive gone from the denominator; may be negative: [N, D], [N, D] -> []

    mean v over 2N anchors
    Yeh et al., ECCV 2022 (decoupled contrastive learning), arXiv 2110.06848
    """
    contrast = crowd(a, b, temperature=temperature, similarity=similarity, akin=akin)
    return contrast.mean(contrast.margin)


def dclw(
    a: Tensor,
    b: Tensor,
    /,
    *,
    temperature: float = 0.5,
    similarity: str = "cosine",
    sigma: float = 0.5,
    akin: Tensor | None = None,
) -> Tensor:
    """`dcl` that pulls hardest at the pairs that agree least; the weights average to 1: [N, D], [N, D] -> []

    mean logsumexp(s-) - w s+ over 2N anchors, w = 2 - N softmax over pairs of (a . b / sigma)
    Yeh et al., ECCV 2022 (DCLW), arXiv 2110.06848
    """
    contrast = crowd(a, b, temperature=temperature, similarity=similarity, akin=akin)
    if not sigma > 0:
        raise ValueError(f"a sigma is wanted above 0; {sigma} came")
    agreement = contrast.own[: a.shape[0]] * temperature  # [N]
    weight = (2 - a.shape[0] * torch.softmax(agreement / sigma, 0)).tile(2)
    return contrast.mean(contrast.log_sum() - weight * contrast.own)


def corrected(contrast: Contrast, log_sum: Tensor, prior: float, floor: float) -> Tensor:
    """A log sum less the positives unseen in it, at least log n + floor: [A], [A] -> [A]"""
    if not 0 <= prior < 1:
        raise ValueError(f"a prior is wanted from 0 up to 1, a share; {prior} came")
    n = contrast.n_rivals
    log_share = n.log() + contrast.own - log_sum + (math.log(prior) if prior else -math.inf)
    remains = log_share < -1e-6  # beyond it nothing is left of the sum but rounding
    left = torch.log(-torch.expm1(torch.where(remains, log_share, -1.0)))
    log_negatives = log_sum + left - math.log1p(-prior)
    lowest = n.log() + floor
    return torch.where(remains & (log_negatives > lowest), log_negatives, lowest)


def debiased(
    a: Tensor,
    b: Tensor,
    /,
    *,
    temperature: float = 0.5,
    similarity: str = "cosine",
    prior: float = 0.1,
    akin: Tensor | None = None,
) -> Tensor:
    """`nt_xent` whose negatives are corrected for the share `prior` that are positives: [N, D], [N, D] -> []

    mean softplus(log g - s+), g = max((sum e^s- - prior n e^s+) / (1 - prior), n e^(-1 / temperature))
    Chuang et al., NeurIPS 2020, arXiv 2007.00224

    The floor is the least that n cosines can sum to, for `dot` too; on it negatives have no gradient.
    """
    contrast = crowd(a, b, temperature=temperature, similarity=similarity, akin=akin)
    log_negatives = corrected(contrast, contrast.log_sum(), prior, floor=-1 / temperature)
    return contrast.mean(F.softplus(log_negatives - contrast.own))


def hard_negative(
    a: Tensor,
    b: Tensor,
    /,
    *,
    hardness: float = 1.0,
    prior: float = 0.1,
    akin: Tensor | None = None,
    **scoring: Unpack[Scoring],
) -> Tensor:
    """`debiased` with each negative weighted by e^(hardness s), mean weight 1: [N, D], [N, D] -> []

    mean softplus(log g - s+), g of `debiased` over n sum e^((1 + hardness) s-) / sum e^(hardness s-)
    Robinson, Chuang, Sra, Jegelka, ICLR 2021 (HCL), arXiv 2010.04592
    """
    contrast = crowd(a, b, akin=akin, **scoring)
    reweighted = contrast.log_sum(1 + hardness) - contrast.log_sum(hardness) + contrast.n_rivals.log()
    log_negatives = corrected(contrast, reweighted, prior, floor=-1 / scoring.get("temperature", 0.5))
    return contrast.mean(F.softplus(log_negatives - contrast.own))


def sup_con(
    a: Tensor,
    b: Tensor,
    /,
    *,
    temperature: float = 0.5,
    similarity: str = "cosine",
    labels: Tensor | None = None,
    akin: Tensor | None = None,
) -> Tensor:
    """Each row finds all rows of its label, or its partner alone without labels: [N, D], [N, D] -> []

    mean over 2N anchors of logsumexp(s of all others) - mean(s of all positives)
    Khosla et al., NeurIPS 2020 (SupCon), arXiv 2004.11362

    `labels` [N] draws equal ones together; `akin` only leaves pairs out, unless their labels are equal.
    """
    pairs = crowd(a, b, temperature=temperature, similarity=similarity, akin=akin)
    itself = torch.eye(2 * a.shape[0], dtype=torch.bool, device=a.device)
    positives = kin(alike(labels, a), a).tile(2, 2) & ~itself
    rivals = pairs.rivals & ~positives
    pull = torch.where(positives, pairs.scores, 0.0).sum(1) / positives.sum(1)
    against_all = Contrast(pull, pairs.scores, rivals | positives)
    return pairs._replace(rivals=rivals).mean(against_all.margin)


def alike(labels: Tensor | None, like: Tensor) -> Tensor | None:
    """Which pairs carry equal labels: [N] -> [N, N]"""
    if labels is None:
        return None
    if labels.shape != like.shape[:1]:
        raise ValueError(f"labels want [{like.shape[0]}], one for each pair; {list(labels.shape)} came")
    return labels[:, None] == labels[None, :]
