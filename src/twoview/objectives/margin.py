"""The primitive of all contrastive objectives, v = logsumexp(s-) - s+; exp(s) is never formed."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Contrast(NamedTuple):
    """Anchors, the score each has with its partner, and its scores with everyone, the negatives marked.

        facing    a against b              crowd    2N anchors, each against all of a and b

              b0 b1 b2                           a0 a1 a2 b0 b1 b2
          a0   +  -  -                       a0   .  -  -  +  -  -
          a1   -  +  -                       b0   +  -  -  .  -  -       . is the anchor itself

    Pairs that are akin are neither + nor -.
    """

    own: Tensor  # [A] the score with the partner, s+
    scores: Tensor  # [A, C] the scores with all candidates, over the temperature
    rivals: Tensor  # [A, C] which candidates are negatives

    @property
    def met(self) -> Tensor:
        """Which anchors have a negative at all: [A]"""
        return self.rivals.any(1)

    @property
    def n_rivals(self) -> Tensor:
        """How many negatives each anchor has, 1 for one that has none so that its logarithm exists: [A]"""
        return self.rivals.sum(1).clamp_min(1).to(self.own.dtype)

    def log_sum(self, power: float = 1.0) -> Tensor:
        """log sum exp(power * s) over the negatives, finite but meaningless where there are none: [A]"""
        powers = torch.where(self.rivals, power * self.scores, -torch.inf)
        return torch.logsumexp(torch.where(self.met[:, None], powers, 0.0), 1)

    @property
    def margin(self) -> Tensor:
        """v = logsumexp(s-) - s+: below 0 where the partner outweighs all negatives together: [A]"""
        return self.log_sum() - self.own

    def mean(self, losses: Tensor) -> Tensor:
        """The mean over all anchors, those without negatives counting as zero: [A] -> []"""
        return torch.where(self.met, losses, 0 * self.own).mean()  # 0 * own: a NaN stays a NaN


def precise(x: Tensor) -> Tensor:
    """At least float32: [...] -> [...]"""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def unit(x: Tensor) -> Tensor:
    """Rows of length one in at least float32, however long before; zero rows stay zero: [N, D] -> [N, D]"""
    # shorter rows have no direction: their gradient must fit the dtype
    shortest = 1e-3 if x.dtype == torch.float16 else 1e-6
    x = precise(x)
    largest = x.detach().abs().amax(-1, keepdim=True)  # [N, 1]; over it squares neither overflow nor vanish
    return F.normalize(x / largest.clamp_min(shortest), dim=-1, eps=1.0)


SIMILARITIES: dict[str, Callable[[Tensor], Tensor]] = {"cosine": unit, "dot": precise}


def products(x: Tensor, y: Tensor) -> Tensor:
    """Inner products in the rows' own precision, whatever autocast wants: [N, D], [M, D] -> [N, M]"""
    with torch.autocast(device_type=x.device.type, enabled=False):
        return x @ y.T


def check_pairs(a: Tensor, b: Tensor, akin: Tensor | None = None, *, at_least: int = 1) -> None:
    """Refuses what are no pairs of rows."""
    shapes = f"{list(a.shape)} and {list(b.shape)} came"
    if a.ndim != 2 or a.shape != b.shape or a.shape[1] == 0:
        raise ValueError(f"an objective wants pairs of rows, [N, D] and [N, D]; {shapes}")
    if a.shape[0] < at_least:
        raise ValueError(f"this objective wants {at_least} pairs or more; {shapes}")
    if not (a.is_floating_point() and b.is_floating_point()):
        raise ValueError(f"an objective wants real numbers; {a.dtype} and {b.dtype} came")
    if akin is not None and (akin.shape != (a.shape[0], a.shape[0]) or akin.dtype != torch.bool):
        wanted = f"booleans of [{a.shape[0]}, {a.shape[0]}]"
        raise ValueError(
            f"akin wants {wanted}, one for each two pairs; {akin.dtype} of {list(akin.shape)} came"
        )


def scored(a: Tensor, b: Tensor, temperature: float, similarity: str) -> Tensor:
    """Similarities over the temperature: [N, D], [M, D] -> [N, M]"""
    if similarity not in SIMILARITIES:
        raise ValueError(f"no similarity {similarity!r}; there are {', '.join(SIMILARITIES)}")
    if not temperature > 0:
        raise ValueError(f"a temperature is wanted above 0; {temperature} came")
    rows = SIMILARITIES[similarity]
    return products(rows(a), rows(b)) / temperature


def kin(akin: Tensor | None, like: Tensor) -> Tensor:
    """Pairs that are no negatives, each one's self among them: [N, N]"""
    self_alone = torch.eye(like.shape[0], dtype=torch.bool, device=like.device)
    return self_alone if akin is None else self_alone | akin


def among(scores: Tensor, akin: Tensor | None = None) -> Contrast:
    """Rows as anchors, columns as candidates, partners on the diagonal: [N, N] -> N anchors"""
    return Contrast(scores.diagonal(), scores, ~kin(akin, scores))


def facing(
    a: Tensor,
    b: Tensor,
    /,
    *,
    temperature: float = 0.5,
    similarity: str = "cosine",
    akin: Tensor | None = None,
) -> Contrast:
    """Each row of a against all of b: [N, D], [N, D] -> N anchors with N - 1 negatives"""
    check_pairs(a, b, akin)
    return among(scored(a, b, temperature, similarity), akin)


def crowd(
    a: Tensor,
    b: Tensor,
    /,
    *,
    temperature: float = 0.5,
    similarity: str = "cosine",
    akin: Tensor | None = None,
) -> Contrast:
    """Each row of both views against all others: [N, D], [N, D] -> 2N anchors with 2N - 2 negatives"""
    check_pairs(a, b, akin)
    rows = torch.cat([a, b])  # [2N, D]
    scores = scored(rows, rows, temperature, similarity)
    own = scores.diagonal(a.shape[0])  # [N]
    return Contrast(torch.cat([own, own]), scores, ~kin(akin, a).tile(2, 2))
