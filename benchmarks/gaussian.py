"""Gaussians whose information is known, critics of them, and what estimators say of drawn sets.

x, y ~ N(0, 1) in 20 dimensions of correlation r each: I = -10 log(1 - r^2) nats. A set has K pairs.

info_nce   mean of log K - softplus(v), v = logsumexp(s-) - s+          flat_nce   mean of log(K - 1) - v
dv         mean s+ - log mean e^s-, over the whole set                  nwj        1 + mean s+ - mean e^s-
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from critic import Bilinear, Separable
from torch import Generator, Tensor, nn

from twoview.objectives import Contrast, among
from twoview.objectives.health import information

DIM = 20
SCALES = (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)
CRITICS: dict[str, Callable[[int], nn.Module]] = {"bilinear": Bilinear, "mlp": Separable}
LOSSES: dict[str, Callable[[Contrast], Tensor]] = {
    "info_nce": lambda contrast: contrast.mean(nn.functional.softplus(contrast.margin)),
    "flat_nce": lambda contrast: contrast.mean(
        contrast.margin
    ),  # its gradient, at a value that can be watched
}
ESTIMATORS = ("info_nce", "flat_nce", "nwj", "dv")
Critic = Callable[[Tensor, Tensor], Tensor]  # [K, D], [K, D] -> [K, K]


class Budget(NamedTuple):
    """How much is drawn."""

    nats: Sequence[float] = (2, 4, 6, 8, 10)
    sizes: Sequence[int] = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    anchors: int = 8192  # at least so many to a number
    sets: int = 32  # and at least so many sets
    steps: int = 1000  # of training a critic, each on a new set
    trained_on: int = 128  # the size of those sets


def correlation(nats: float) -> float:
    """The correlation of each dimension that makes so much information."""
    return math.sqrt(-math.expm1(-2 * nats / DIM))


def pairs(nats: float, size: int, draw: Generator) -> tuple[Tensor, Tensor]:
    """A set of correlated pairs: [K, D], [K, D]"""
    x, noise = torch.randn(2, size, DIM, generator=draw, dtype=torch.float64)
    r = correlation(nats)
    return x, r * x + math.sqrt(1 - r * r) * noise


def density_ratio(nats: float) -> Critic:
    """log p(y | x) / p(y), of which nothing is learnt."""
    r = correlation(nats)

    def scores(x: Tensor, y: Tensor) -> Tensor:
        squares = x.square().sum(1)[:, None] + y.square().sum(1)[None, :]
        return nats + (r * x @ y.T - r * r * squares / 2) / (1 - r * r)

    return scores


def estimates(scores: Tensor) -> dict[str, Tensor]:
    """What each estimator says of one set, in nats: [K, K] -> []"""
    contrast, size = among(scores), len(scores)
    own = contrast.own.mean()
    log_mean = torch.logsumexp(contrast.log_sum(), 0) - math.log(size * (size - 1))
    return {
        "info_nce": information(contrast).mean(),
        "flat_nce": math.log(size - 1) - contrast.margin.mean(),
        "nwj": 1 + own - log_mean.exp(),
        "dv": own - log_mean,
    }


@torch.no_grad()
def drawn(
    critics: Mapping[str, Critic], nats: float, size: int, budget: Budget
) -> dict[str, dict[str, Tensor]]:
    """Every critic's estimates of the same sets, by critic and estimator: [sets] each"""
    draw = Generator().manual_seed(size)
    found: dict[str, list[dict[str, Tensor]]] = {name: [] for name in critics}
    for _ in range(max(budget.sets, budget.anchors // size)):
        x, y = pairs(nats, size, draw)
        for name, critic in critics.items():
            found[name].append(estimates(critic(x, y)))
    return {
        name: {each: torch.stack([one[each] for one in sets]) for each in ESTIMATORS}
        for name, sets in found.items()
    }


def fitted(critic: nn.Module, loss: Callable[[Contrast], Tensor], nats: float, budget: Budget) -> nn.Module:
    """The critic after its training on sets it never sees again."""
    draw, adam = Generator().manual_seed(1), torch.optim.Adam(critic.parameters(), 1e-3)
    for _ in range(budget.steps):
        x, y = pairs(nats, budget.trained_on, draw)
        adam.zero_grad()
        loss(among(critic(x.float(), y.float()))).backward()
        adam.step()
    return critic.double().requires_grad_(False)


def learnt(nats: float, budget: Budget) -> dict[str, Critic]:
    """Each critic, trained by each objective."""
    found: dict[str, Critic] = {}
    for (name, critic), (by, loss) in ((c, one) for c in CRITICS.items() for one in LOSSES.items()):
        torch.manual_seed(0)
        found[f"{name} by {by}"] = fitted(critic(DIM), loss, nats, budget)
    return found


def perturbed(nats: float) -> dict[str, Critic]:
    """The density ratio, the same bent in several ways, and shifted by anchor, which changes nothing."""
    ratio, r = density_ratio(nats), correlation(nats)
    return {
        **{f"ratio x {scale:g}": scaled(ratio, scale) for scale in SCALES},
        "ratio + c(x)": lambda x, y: ratio(x, y) + x.square().sum(1)[:, None],
        "ratio + sin(x . y)": lambda x, y: ratio(x, y) + torch.sin(x @ y.T),
        "ratio without y alone": lambda x, y: r / (1 - r * r) * (x @ y.T),
        "ratio of .9 r": density_ratio(-DIM / 2 * math.log1p(-((0.9 * r) ** 2))),
    }


def scaled(critic: Critic, factor: float) -> Critic:
    """A critic of the same order and another sharpness."""
    return lambda x, y: factor * critic(x, y)
