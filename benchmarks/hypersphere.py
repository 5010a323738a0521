"""What normalising is for, and what a tighter bound is worth, on the encoder and images of small_batch.py.

A factor on rows that are not normalised sharpens the softmax over them and changes the loss, but no order.
Critics vouch for more or less information; the encoders behind them are probed for what they know.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import NamedTuple

import torch
import torch.nn.functional as F
from critic import Bilinear, Joint, Likeness, Separable
from fashion import Budget, Encoder, asked, fashion, learn, probed, states_of, view
from matplotlib.axes import Axes
from record import FIGURES, RESULTS, STYLES, Row, claim, load, made, markdown, panels, save, told
from scipy import stats
from torch import Generator, Tensor, nn

from twoview.objectives import Contrast, among, facing
from twoview.objectives.health import ess, information, one_minus_p

BATCH, SETS = 256, 8  # pairs in a contrast; how many held-out ones are looked at
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
CRITICS: dict[str, Callable[[int], nn.Module]] = {
    "cosine / 1": lambda dim: Likeness(1.0),
    "cosine / .5": lambda dim: Likeness(0.5),
    "cosine / .2": lambda dim: Likeness(0.2),
    "cosine / .1": lambda dim: Likeness(0.1),
    "cosine / .05": lambda dim: Likeness(0.05),
    "dot product": lambda dim: Likeness(1.0, "dot"),
    "bilinear": Bilinear,
    "separable": Separable,
    "joint": Joint,
}
SWEPT = "dot product"  # whose rows are scaled


class Scored(nn.Module):
    """An encoder and what scores pairs of its rows; a dot product alone is what never sees a unit row."""

    def __init__(self, critic: str, budget: Budget, dim: int = 64) -> None:
        super().__init__()
        self.encoder, self.critic = Encoder(budget.width, dim), CRITICS[critic](dim)

    def forward(self, first: Tensor, second: Tensor) -> Contrast:
        """N pairs of views, each of the first against all of the second."""
        a, b = self.encoder(torch.cat([first, second])).chunk(2)
        return among(self.critic(a, b))


def found_first(contrast: Contrast) -> Tensor:
    """The share of anchors that score nobody above their partner: N anchors -> []"""
    best = torch.where(contrast.rivals, contrast.scores, -torch.inf).amax(1)
    return (contrast.own >= best).double().mean()


def health(contrast: Contrast) -> dict[str, float]:
    """What the softmax over a set looks like, and how well the set is ordered."""
    numbers = {
        "loss": F.softplus(contrast.margin).mean(),
        "information": information(contrast).mean(),
        "ess": ess(contrast).mean(),
        "one_minus_p": one_minus_p(contrast).mean(),
        "found_first": found_first(contrast),
    }
    return {name: float(number) for name, number in numbers.items()}


def averaged(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every number."""
    return {name: round(fmean(one[name] for one in each), 5) for name in each[0]}


def held_out(budget: Budget) -> Iterator[tuple[Tensor, Tensor]]:
    """Sets of two views of test images, the same for everybody."""
    images, _ = fashion(budget.data, "t10k", budget.device)
    draw = Generator().manual_seed(7)
    for part in images[: SETS * BATCH].split(BATCH):
        yield view(part, draw), view(part, draw)


def trained(critic: str, seed: int, budget: Budget) -> Scored:
    """An encoder and a critic that maximised InfoNCE together."""
    images, _ = fashion(budget.data, "train", budget.device)
    torch.manual_seed(seed)
    scored = Scored(critic, budget).to(budget.device)

    def loss(first: Tensor, second: Tensor, seen: int) -> Tensor:
        contrast = scored(first, second)
        return contrast.mean(F.softplus(contrast.margin))

    learn(scored, loss, images, budget, batch=BATCH, seed=seed)
    return scored.requires_grad_(False)


def measured(critic: str, seed: int, budget: Budget) -> Row:
    """What a probe finds behind a critic, and what the critic vouches for on images nobody has seen."""
    scored = trained(critic, seed, budget)
    seen = averaged([health(scored(*pair)) for pair in held_out(budget)])
    found = probed(budget, lambda shown: states_of(scored.encoder, shown))
    more = {**budget.stated, "critic": critic, "seed": seed, "log_k": round(math.log(BATCH), 5), **seen}
    return made(f"critic {critic} seed {seed}", found, "share", device=budget.device, **more)


def swept(similarity: str, scale: float, rows: Sequence[tuple[Tensor, Tensor]], budget: Budget) -> Row:
    """The loss when rows of mean length 1 are multiplied, with the softmax and the order behind it."""
    size = fmean(float(a.norm(dim=1).mean()) for a, _ in rows)
    factor = scale / size
    scored = [facing(factor * a, factor * b, temperature=1.0, similarity=similarity) for a, b in rows]
    seen = averaged([health(contrast) for contrast in scored])
    more = {**budget.stated, "similarity": similarity, "scale": scale, **seen}
    return made(f"rows x {scale:05.2f}, {similarity}", seen["loss"], "nats", device=budget.device, **more)


def sweep(budget: Budget) -> dict[str, Row]:
    """Every factor on the rows of one trained encoder, with and without normalising."""
    encoder = trained(SWEPT, 0, budget).encoder
    rows = [(encoder(a), encoder(b)) for a, b in held_out(budget)]
    found = [swept(name, scale, rows, budget) for name, scale in itertools.product(("dot", "cosine"), SCALES)]
    return {row["row"]: row for row in found}


class Average(NamedTuple):
    """A critic's numbers, averaged over seeds."""

    critic: str
    information: float
    accuracy: float
    spread: float  # of the accuracy: half its range


def averages(rows: Mapping[str, Row]) -> list[Average]:
    """Every critic, the least information first."""
    found = []
    for critic in CRITICS:
        own = [row for row in rows.values() if row.get("critic") == critic]
        values = [row["value"] for row in own]
        spread = (max(values) - min(values)) / 2
        found.append(Average(critic, fmean(row["information"] for row in own), fmean(values), spread))
    return sorted(found, key=lambda each: each.information)


def claims(rows: Mapping[str, Row], scaled: Mapping[str, Row]) -> Iterator[Row]:
    """What the numbers say of three sentences."""
    of = {name: [row for row in scaled.values() if row["similarity"] == name] for name in ("dot", "cosine")}
    orders = {row["found_first"] for row in of["dot"]}
    weights = [row["ess"] for row in sorted(of["dot"], key=lambda row: row["scale"])]
    sharper = all(after < before for before, after in itertools.pairwise(weights))
    name = "a factor sharpens the softmax over rows that are not normalised"
    yield claim(
        name, weights[-1], "share of the negatives that count, at the largest", "falling", holds=sharper
    )
    name = "and finds no partner more"
    yield claim(name, len(orders), "shares of partners found first", "1", holds=len(orders) == 1)
    moved = max(row["loss"] for row in of["cosine"]) - min(row["loss"] for row in of["cosine"])
    name = "normalised rows do not notice the factor"
    yield claim(name, moved, "nats from least to most loss", "< 1e-4", holds=moved < 1e-4)
    bound, accuracy = zip(*((each.information, each.accuracy) for each in averages(rows)), strict=True)
    order, chance = stats.kendalltau(bound, accuracy)
    verdict = "confirmed" if order > 0 and chance < 0.05 else "not shown"
    name = "claim: a tighter bound comes with better states"
    yield made(
        name, float(order), "of Kendall's tau over critics", chance=round(float(chance), 4), verdict=verdict
    )


def draw_critics(axes: Axes, rows: Mapping[str, Row]) -> None:
    """Accuracy by information, each critic by name."""
    for style, kind in zip(STYLES, ("cosine", "other"), strict=False):
        shown = [each for each in averages(rows) if each.critic.startswith("cosine") == (kind == "cosine")]
        at = [each.information for each in shown], [each.accuracy for each in shown]
        bars = [each.spread for each in shown]
        axes.errorbar(
            *at, yerr=bars, color=style.color, marker=style.marker, ls="none", capsize=2, label=kind
        )
        for number, each in enumerate(shown):
            place = (4, (4, -10)[number % 2])  # neighbours' names above and below
            axes.annotate(each.critic, at_of(each), xytext=place, textcoords="offset points", fontsize=8)
    axes.axvline(math.log(BATCH), color="black", lw=0.8)
    axes.set(xlabel=f"InfoNCE on held-out images, nats (line: log {BATCH})", ylabel="linear probe, accuracy")
    axes.set_title("Bound and probe, critic by critic")


def at_of(each: Average) -> tuple[float, float]:
    """Where a critic lies in the figure."""
    return each.information, each.accuracy


def draw_sweep(axes: Axes, scaled: Mapping[str, Row]) -> None:
    """Loss, effective negatives and order by factor, without normalising; the loss with it."""
    lines = {
        "loss, dot product": ("dot", "loss"),
        "loss, cosine": ("cosine", "loss"),
        "negatives that count, share": ("dot", "ess"),
        "partners found first, share": ("dot", "found_first"),
    }
    for style, (label, (similarity, number)) in zip(STYLES, lines.items(), strict=False):
        shown = [row for row in scaled.values() if row["similarity"] == similarity]
        axes.plot(SCALES, [row[number] for row in shown], **style._asdict(), label=label)
    axes.set(
        xscale="log", yscale="symlog", xlabel="factor on rows of mean length 1", ylabel="nats, or a share"
    )
    axes.set_xticks(SCALES, [f"{scale:g}" for scale in SCALES])
    axes.minorticks_off()
    axes.set_title("The same rows, multiplied")
    axes.legend()


def table(rows: Mapping[str, Row]) -> str:
    """Critics by the information they vouch for."""
    body = [
        [each.critic, f"{each.information:.2f}", f"{each.accuracy:.4f} ± {each.spread:.4f}"]
        for each in averages(rows)
    ]
    return markdown(["critic", "InfoNCE, held out", "probe"], body)


def main(words: Sequence[str] | None = None) -> None:
    """Trains what is missing, scales, decides, writes and draws."""
    about = (__doc__ or "").splitlines()[0]
    wanted = asked(words, about, RESULTS / "hypersphere.json", FIGURES / "hypersphere.svg")
    jobs = {
        f"critic {critic} seed {seed}": partial(measured, critic, seed, wanted.budget)
        for seed, critic in itertools.product(range(wanted.seeds), CRITICS)
    }
    rows = wanted.grid.rows(jobs)
    scaled = sweep(wanted.budget)
    decided = list(claims(rows, scaled))
    save(wanted.out, load(wanted.out) | scaled | {row["row"]: row for row in decided})
    with panels(wanted.figure, 2, (9, 3.8)) as (left, right):
        draw_sweep(left, scaled)
        draw_critics(right, rows)
    print(table(rows))
    print(told(decided))


if __name__ == "__main__":
    main()
