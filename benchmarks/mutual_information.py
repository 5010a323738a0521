"""The theory of contrastive estimates, run: bounds, biases and spreads on Gaussians of known information."""

import argparse
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from gaussian import (
    DIM,
    SCALES,
    Budget,
    correlation,
    density_ratio,
    drawn,
    learnt,
    pairs,
    perturbed,
)
from matplotlib.axes import Axes
from record import FIGURES, RESULTS, STYLES, Row, claim, finite, made, markdown, panels, save, told
from torch import Generator, Tensor

from twoview.objectives import among
from twoview.objectives.health import information

NAMES = {"info_nce": "InfoNCE", "flat_nce": "FlatNCE, plug-in", "nwj": "NWJ", "dv": "DV"}


def rows_of(critics: Mapping[str, Mapping[str, Tensor]], nats: float, size: int) -> Iterator[Row]:
    """A row a critic: what each estimator says on average, and how far it spreads from set to set."""
    for critic, by in critics.items():
        found = {name: (finite(each.mean()), finite(each.std())) for name, each in by.items()}
        yield made(
            f"I = {nats:g}, K = {size:04d}, {critic}: InfoNCE",
            float(by["info_nce"].mean()),
            "nats",
            reach=f"<= {min(nats, math.log(size)):.3f}",
            critic=critic,
            nats=nats,
            size=size,
            sets=len(by["info_nce"]),
            estimates=found,
        )


def excess(above: Tensor) -> float:
    """The mean in units of its own error."""
    return float(above.mean() / (above.std() / math.sqrt(len(above))).clamp_min(1e-12))


class Measured(NamedTuple):
    """Every estimate of every set: of the ratio and learnt critics, and of the ratio bent."""

    straight: Mapping[tuple[float, int], Mapping[str, Mapping[str, Tensor]]]  # by (I, K), critic, estimator
    bent: Mapping[float, Mapping[str, Mapping[str, Tensor]]]  # by I, at sets of `trained_on`


def measure(budget: Budget) -> Measured:
    """All that is drawn, critic by critic on the same sets."""
    straight, bent = {}, {}
    for nats in budget.nats:
        critics = {"density ratio": density_ratio(nats), **learnt(nats, budget)}
        for size in budget.sizes:
            straight[nats, size] = drawn(critics, nats, size, budget)
        bent[nats] = drawn(perturbed(nats), nats, budget.trained_on, budget)
        print(f"I = {nats:g}: done", flush=True)
    return Measured(straight, bent)


def bounds(measured: Measured) -> Iterator[Row]:
    """What holds of InfoNCE for any critic."""
    over, above = -math.inf, -math.inf
    for (nats, size), found in measured.straight.items():
        for by in found.values():
            over = max(over, float(by["info_nce"].max()) - math.log(size))
            above = max(above, excess(by["info_nce"] - nats))
    yield claim("InfoNCE is never over log K, in any set", over, "nats over", "<= 0", holds=over <= 1e-12)
    yield claim("InfoNCE is not above I on average", above, "errors over", "<= 4", holds=above <= 4)


def dual(scores: Tensor, u: Tensor) -> Tensor:
    """1 - u - mean over k of e^(g_k - g_1 - u), the lemma's right side: [K, K], [K] -> [K]"""
    return 1 - u - torch.exp(scores - scores.diagonal()[:, None] - u[:, None]).mean(1)


def lemma(nats: float, size: int) -> Iterator[Row]:
    """InfoNCE of each anchor against its dual, at random u and at u = log mean e^(g_k - g_1)."""
    draw = Generator().manual_seed(3)
    scores = density_ratio(nats)(*pairs(nats, size, draw))
    told = information(among(scores))
    best = torch.logsumexp(scores, 1) - scores.diagonal() - math.log(size)
    tried = [best + 3 * torch.randn(size, generator=draw, dtype=torch.float64) for _ in range(1000)]
    broken = sum(int((told < dual(scores, u) - 1e-12).sum()) for u in tried)
    gap = float((told - dual(scores, best)).abs().max())
    yield claim(
        "lemma 3.3 holds for random u", broken, "violations", "0", holds=broken == 0, tried=1000 * size
    )
    yield claim("lemma 3.3 is tight at the best u", gap, "nats apart", "<= 1e-12", holds=gap <= 1e-12)


def growth(measured: Measured, budget: Budget) -> Iterator[Row]:
    """Which way the best critic's estimates go as K grows: InfoNCE from below, the plug-in from above."""
    for name, sign, way in (("info_nce", 1, "rises"), ("flat_nce", -1, "falls")):
        steps, left = [], []
        for nats in budget.nats:
            found = [measured.straight[nats, size]["density ratio"][name] for size in budget.sizes]
            steps += [sign * step(before, after) for before, after in itertools.pairwise(found)]
            left.append(round(float(found[-1].mean()) - nats, 4))
        name = f"{NAMES[name]} {way} towards I as K grows"
        yield claim(
            name, min(steps), "errors, least step", ">= -3", holds=min(steps) >= -3, off_at_largest=left
        )


def step(before: Tensor, after: Tensor) -> float:
    """How far the mean moved, in units of its own error."""
    error = torch.sqrt(before.var() / len(before) + after.var() / len(after))
    return float((after.mean() - before.mean()) / error)


def plug_ins(measured: Measured) -> Iterator[Row]:
    """What the form without the positive does, at the critic that is best for InfoNCE and beyond it."""
    ratio = {key: found["density ratio"] for key, found in measured.straight.items()}
    above = {key: by["flat_nce"] - key[0] for key, by in ratio.items()}
    clear = [key for key, each in above.items() if excess(each) > 3]
    worst, share = max(float(each.mean()) for each in above.values()), f"{len(clear)} of {len(above)}"
    name = "corollary 3.4 for FlatNCE without the positive: not above I on average"
    yield claim(name, worst, "nats above I, at most", "<= 0", holds=not clear, settings_clearly_above=share)
    for nats, size in ratio:
        if size == 2:
            r = correlation(nats)
            exact = DIM * r * r / (1 - r * r)
            gap = excess(ratio[nats, size]["flat_nce"] - exact)
            name = f"FlatNCE's plug-in at K = 2 is Jeffreys' divergence: I = {nats:g}"
            yield claim(
                name, gap, "errors apart", "within 4", holds=abs(gap) <= 4, divergence=round(exact, 4)
            )


def optimum(measured: Measured) -> Iterator[Row]:
    """Whether any bent critic gets more out of InfoNCE than the density ratio, on the same sets."""
    for nats, found in measured.bent.items():
        straight = found["ratio x 1"]["info_nce"]
        gains = {name: by["info_nce"] - straight for name, by in found.items() if name != "ratio x 1"}
        free = float(gains.pop("ratio + c(x)").abs().max())
        best = max(gains, key=lambda name: float(gains[name].mean()))
        gain, name = excess(gains[best]), f"the density ratio is InfoNCE's best critic: I = {nats:g}"
        yield claim(name, gain, "errors over it", "<= 3", holds=gain <= 3 and free < 1e-9, nearest=best)
        most = max(found, key=lambda name: float(found[name]["flat_nce"].mean()))
        value = float(found[most]["flat_nce"].mean())
        name = f"the density ratio is FlatNCE's best critic: I = {nats:g}"
        ratio = float(found["ratio x 1"]["flat_nce"].mean())
        yield claim(name, value - ratio, "nats over it", "<= 0", holds=value <= ratio, critic=most)


def table(measured: Measured, size: int) -> str:
    """Mean and spread of every estimator at the density ratio, by information, at one K."""
    body = []
    for nats, found in (
        (n, found["density ratio"]) for (n, k), found in measured.straight.items() if k == size
    ):
        told = [f"{float(found[name].mean()):.2f} ± {float(found[name].std()):.2f}" for name in NAMES]
        body.append([f"{nats:g}", *told])
    return markdown([f"I, at K = {size} (log K = {math.log(size):.2f})", *NAMES.values()], body)


def figure(measured: Measured, budget: Budget, path: Path) -> None:
    """Estimates by K, estimates by I with learnt critics beside, and what scaling the best critic does."""
    with panels(path, 3, (11, 3.8)) as (by_size, by_nats, by_scale):
        draw_sizes(by_size, measured, budget)
        draw_nats(by_nats, measured, budget)
        most = max(budget.nats)
        for style, name in zip(STYLES, ("info_nce", "flat_nce"), strict=False):
            found = [float(measured.bent[most][f"ratio x {scale:g}"][name].mean()) for scale in SCALES]
            by_scale.plot(SCALES, found, **style._asdict(), label=NAMES[name])
        by_scale.axhline(most, color="black", lw=0.8, ls=":", label="I")
        by_scale.set(xscale="log", xlabel="factor on the density ratio", ylabel="nats", xticks=SCALES)
        by_scale.set_xticks(SCALES, [f"{scale:g}" for scale in SCALES], minor=False)
        by_scale.minorticks_off()
        by_scale.set_title(f"The best critic, scaled: I = {most:g}, K = {budget.trained_on}")
        by_scale.legend()


def draw_sizes(axes: Axes, measured: Measured, budget: Budget) -> None:
    """Means of each estimator at the density ratio, a band of one spread around them."""
    most = max(budget.nats)
    for style, (name, label) in zip(STYLES, NAMES.items(), strict=False):
        found = [measured.straight[most, size]["density ratio"][name] for size in budget.sizes]
        means, spread = (torch.stack([part(each) for each in found]) for part in (torch.mean, torch.std))
        axes.plot(budget.sizes, means, **style._asdict(), label=label)
        axes.fill_between(budget.sizes, means - spread, means + spread, color=style.color, alpha=0.12, lw=0)
    axes.plot(budget.sizes, [math.log(size) for size in budget.sizes], color="black", lw=0.8, label="log K")
    axes.axhline(most, color="black", lw=0.8, ls=":", label="I")
    axes.set(xscale="log", xlabel="K", ylabel="nats", ylim=(-1, 3 * most))
    axes.set_title(f"The density ratio: I = {most:g}")
    axes.legend(ncols=2)


def draw_nats(axes: Axes, measured: Measured, budget: Budget) -> None:
    """What the best and the learnt critics say at one K."""
    size = budget.trained_on
    lines = {
        "InfoNCE, density ratio": ("density ratio", "info_nce"),
        "plug-in, density ratio": ("density ratio", "flat_nce"),
        "InfoNCE, MLP": ("mlp by info_nce", "info_nce"),
        "plug-in, MLP of FlatNCE": ("mlp by flat_nce", "flat_nce"),
        "InfoNCE, bilinear": ("bilinear by info_nce", "info_nce"),
    }
    for style, (label, (critic, name)) in zip(STYLES, lines.items(), strict=True):
        found = [float(measured.straight[nats, size][critic][name].mean()) for nats in budget.nats]
        axes.plot(budget.nats, found, **style._asdict(), label=label)
    axes.plot(budget.nats, budget.nats, color="black", lw=0.8, ls=":", label="I")
    axes.axhline(math.log(size), color="black", lw=0.8, label="log K")
    axes.set(yscale="log", xlabel="I in nats", ylabel="nats, logarithmic")
    axes.set_title(f"Best and learnt critics, K = {size}")
    axes.legend(fontsize=7.5)


def main(words: Sequence[str] | None = None) -> None:
    """Draws, decides, writes, and prints the table and the claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    budget = Budget()
    parser.add_argument("--nats", type=float, nargs="+", default=budget.nats)
    parser.add_argument("--sizes", type=int, nargs="+", default=budget.sizes)
    for name in ("anchors", "sets", "steps", "trained_on"):
        parser.add_argument(f"--{name}", type=int, default=getattr(budget, name))
    parser.add_argument("--out", type=Path, default=RESULTS / "mutual_information.json")
    parser.add_argument("--figure", type=Path, default=FIGURES / "mutual_information.svg")
    asked = vars(parser.parse_args(words))
    out, drawing = asked.pop("out"), asked.pop("figure")
    measured = measure(budget := Budget(**asked))
    decided = [
        *bounds(measured),
        *lemma(6, 64),
        *growth(measured, budget),
        *plug_ins(measured),
        *optimum(measured),
    ]
    rows = [row for (nats, size), found in measured.straight.items() for row in rows_of(found, nats, size)]
    save(out, {row["row"]: row for row in rows + decided})
    figure(measured, budget, drawing)
    print(table(measured, budget.trained_on))
    print(told(decided))


if __name__ == "__main__":
    main()
