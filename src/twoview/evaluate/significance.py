"""Whether a difference is more than chance: over users, over seeds, over both; every draw seeded.

U users, S seeds, Q questions: a question is one difference, and all of them are asked of the same draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb

import numpy as np

from ..data.column import Ints
from .metrics import Floats

FLIPS = 10_000  # random signs of a permutation test; below so many, all signs there are
DRAWS = 2_000  # bootstrap samples
AT_ONCE = 4 << 20  # cells of a draw held at a time
ROUNDING = 1e-9  # of the sum of all sizes: sums so near each other are equal


@dataclass(frozen=True)
class Estimate:
    """A mean with what it takes to know it: its standard error and the degrees of freedom behind that."""

    mean: float
    error: float
    freedom: float


def flipped(differences: Floats, *, seed: int = 0) -> Floats:
    """How often random signs leave a sum at least as far from 0, two-sided: [U, Q] -> [Q]

    Under the null that the two settings are exchangeable within a user (or seed). All signs are tried
    where they are no more than the draws; else the observed one counts among them, so p is never 0.
    """
    moves = differences[differences.any(1)]  # the signs of noughts change nothing
    total, slack = moves.sum(0), ROUNDING * np.abs(moves).sum(0)
    if 2 ** len(moves) <= FLIPS:
        signs = np.array(list(product((1.0, -1.0), repeat=len(moves))))
        return (np.abs(signs @ moves) >= np.abs(total) - slack).mean(0)
    generator, hits = np.random.default_rng(seed), np.ones(differences.shape[1])
    n_bytes = -(-len(moves) // 8)
    for n in _sizes(FLIPS, len(moves)):
        coins = np.unpackbits(
            generator.integers(256, size=(n, n_bytes), dtype=np.uint8), axis=1, count=len(moves)
        )
        sums = total - 2 * (coins.astype(np.float64) @ moves)
        hits += (np.abs(sums) >= np.abs(total) - slack).sum(0)
    return hits / (FLIPS + 1)


def relabelled(a: Floats, b: Floats, *, seed: int = 0) -> Floats:
    """How often runs dealt anew to two settings differ at least as much: [S, Q], [T, Q] -> [Q]"""
    runs = np.concatenate([a, b])
    dealt = comb(len(runs), len(a))
    if dealt <= FLIPS:
        hands = np.array(list(combinations(range(len(runs)), len(a))))
    else:
        hands = np.random.default_rng(seed).random((FLIPS, len(runs))).argsort(1)[:, : len(a)]
    gaps = np.abs(runs[hands].mean(1) - (runs.sum(0) - runs[hands].sum(1)) / len(b))
    reached = gaps >= np.abs(a.mean(0) - b.mean(0)) - ROUNDING * np.abs(runs).sum(0)
    return reached.mean(0) if dealt <= FLIPS else (reached.sum(0) + 1) / (FLIPS + 1)


def bootstrap(values: Floats, confidence: float, *, seed: int = 0) -> tuple[Floats, Floats]:
    """Where the mean over all users lies, from some drawn again and again: [U, Q] -> [Q], [Q]"""
    generator, n_users = np.random.default_rng(seed), len(values)
    means = []
    for n in _sizes(DRAWS, n_users):
        drawn = generator.integers(n_users, size=(n, n_users)) + np.arange(n)[:, None] * n_users
        counts = np.bincount(drawn.ravel(), minlength=n * n_users).reshape(n, n_users)
        means.append(counts.astype(np.float64) @ values / n_users)
    low, high = np.quantile(np.concatenate(means), [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return low, high


def _sizes(draws: int, n: int) -> list[int]:
    """The draws in parts that fit: 10,000 -> 187, 187, ..."""
    most = max(1, AT_ONCE // max(n, 1))
    return [min(most, draws - first) for first in range(0, draws, most)]


def paired(differences: Floats) -> Estimate:
    """The mean of differences seed by seed, as Student knows it: [S]"""
    n = len(differences)
    return Estimate(float(differences.mean()), float(differences.std(ddof=1)) / n**0.5, n - 1)


def welch(a: Floats, b: Floats) -> Estimate:
    """The difference of two settings' means, whatever their spreads: [S], [T]"""
    parts = [float(values.var(ddof=1)) / len(values) for values in (a, b)]
    return _summed(float(a.mean() - b.mean()), parts, [len(a) - 1, len(b) - 1])


def crossed(difference: Floats, tables: Sequence[Floats]) -> Estimate:
    """The mean over users with an error for other users and other seeds at once: [U], one or two [S, U]

    value = mean + seed + user + rest, seeds and users random and crossed. The mean squares give the variance
    of the mean without bias, the restricted likelihood's own answer where no part is negative,
        V = var(mean over seeds of each user) / U + sum over tables of (MS_seed - MS_rest) / (S U),
    a negative part counting as 0. The table is that of the differences where seeds are paired, else there are
    two, one for each setting. Degrees of freedom: Satterthwaite, Biometrics Bulletin 2, 1946.
    """
    n_users = len(difference)
    parts, freedoms = [float(difference.var(ddof=1)) / n_users], [n_users - 1]
    for table in tables:
        n_seeds = len(table)
        seeds = table.mean(1, keepdims=True) - table.mean()
        rest = table - table.mean(0) - seeds
        ms_seed = n_users * float((seeds**2).sum()) / (n_seeds - 1)
        ms_rest = float((rest**2).sum()) / ((n_seeds - 1) * (n_users - 1))
        if ms_seed > ms_rest:
            parts += [ms_seed / table.size, -ms_rest / table.size]
            freedoms += [n_seeds - 1, (n_seeds - 1) * (n_users - 1)]
    return _summed(float(difference.mean()), parts, freedoms)


def _summed(mean: float, parts: Sequence[float], freedoms: Sequence[int]) -> Estimate:
    """An estimate whose variance is a sum of parts, each known from so many degrees of freedom."""
    variance = sum(parts)
    doubts = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True))
    return Estimate(mean, variance**0.5, variance**2 / doubts if doubts else float(sum(freedoms)))


def effect(differences: Floats) -> float:
    """Cohen's d_z, the mean difference in deviations of the users' own; 0 where nobody differs: [U]"""
    spread = float(differences.std(ddof=1))
    return float(differences.mean()) / spread if spread else 0.0


def holm(chances: Sequence[float], n_questions: int) -> list[float]:
    """Chances for which all of a family may be rejected together; those not listed count as 1.

    p_(i) -> max over j <= i of min(1, (n - j + 1) p_(j))          Holm, Scand. J. Statistics 6, 1979
    """
    order: Ints = np.argsort(chances, kind="stable")
    raised = np.minimum(1.0, np.array(chances)[order] * (n_questions - np.arange(len(chances))))
    adjusted = np.empty(len(chances))
    adjusted[order] = np.maximum.accumulate(raised)
    return adjusted.tolist()
