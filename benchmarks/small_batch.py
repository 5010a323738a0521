"""Does FlatNCE break the log-K curse? Two views of Fashion-MNIST, small and large batches, a linear probe.

Every cell sees as many images, so a small batch takes more steps. A cell "16 of 256" takes the steps of 256
with contrasts among 16: there the number of negatives is all that differs.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any, NamedTuple

import torch
from fashion import Budget, Encoder, asked, fashion, learn, probed, standard, states_of
from matplotlib.axes import Axes
from record import FIGURES, RESULTS, STYLES, Row, made, markdown, panels
from scipy import stats
from torch import Tensor

from twoview.objectives import alignment, crowd, objective, uniformity
from twoview.objectives.health import ess, log_k_saturation, one_minus_p
from twoview.types import Objective

OBJECTIVES: dict[str, dict[str, Any]] = {
    "nt_xent": {"temperature": 0.1},
    "flat_nce": {"temperature": 0.1},
    "align_uniform": {},
}
BATCHES = (16, 32, 64, 128, 256, 512, 1024)
HALF_BATCHES = (16, 128, 1024)
STEPS_ALIKE, AMONG = 256, (4, 16, 64)
UNLEARNT = ("untrained encoder", "pixels")
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Cell(NamedTuple):
    """One encoder to train."""

    objective: str
    batch: int
    among: int  # pairs in one contrast, the batch or a part of it
    precision: str
    seed: int

    @property
    def row(self) -> str:
        return f"{self.objective} {self.among} of {self.batch} {self.precision} seed {self.seed}"


def cells(seeds: int) -> Iterator[Cell]:
    """The grid: its corners for every seed, then the rest by seed, so that a part of it compares."""
    corners = [("float32", batch, batch) for batch in HALF_BATCHES]
    alike = [("float32", STEPS_ALIKE, among) for among in (*AMONG, STEPS_ALIKE)]
    halves = [("bfloat16", batch, batch) for batch in HALF_BATCHES]
    between = [("float32", batch, batch) for batch in BATCHES if batch not in (*HALF_BATCHES, STEPS_ALIKE)]
    parts = [(corners, range(seeds)), *((alike + halves + between, [seed]) for seed in range(seeds))]
    for part, of in parts:
        for seed, (precision, batch, among), name in itertools.product(of, part, OBJECTIVES):
            yield Cell(name, batch, among, precision, seed)


def grouped(objective: Objective, a: Tensor, b: Tensor, among: int) -> Tensor:
    """The mean objective of groups of so many pairs that do not see each other: [N, D], [N, D] -> []"""
    groups = [rows.float().unflatten(0, (-1, min(among, len(rows)))) for rows in (a, b)]
    losses: Tensor = torch.func.vmap(objective)(*groups)
    return losses.mean()


def look(a: Tensor, b: Tensor, among: int) -> dict[str, float]:
    """The health of one contrast, at one temperature for all objectives: [N, D], [N, D]"""
    a, b = a.detach().float()[:among], b.detach().float()[:among]
    contrast = crowd(a, b, temperature=0.1)
    numbers = {
        "ess": ess(contrast).mean(),
        "one_minus_p": one_minus_p(contrast).mean(),
        "saturation": log_k_saturation(contrast).mean(),
        "alignment": alignment(a, b),
        "uniformity": (uniformity(a) + uniformity(b)) / 2,
    }
    return {name: round(float(number), 5) for name, number in numbers.items()}


def measured(cell: Cell, budget: Budget) -> Row:
    """What a linear probe finds in an encoder that the cell trained, and what its contrast was on the way."""
    images, _ = fashion(budget.data, "train", budget.device)
    torch.manual_seed(cell.seed)
    encoder = Encoder(budget.width).to(budget.device)
    contrast = objective(cell.objective, **OBJECTIVES[cell.objective])
    half, story = cell.precision != "float32", []
    steps = math.ceil(budget.seen / cell.batch)
    looked = {
        (1 + round(step * (steps - 1) / (budget.looks - 1))) * cell.batch for step in range(budget.looks)
    }

    def loss(first: Tensor, second: Tensor, seen: int) -> Tensor:
        with torch.autocast(images.device.type, PRECISIONS[cell.precision], enabled=half):
            a, b = encoder(torch.cat([first, second])).chunk(2)
        if seen in looked:
            story.append({"seen": seen, **look(a, b, cell.among)})
        return grouped(contrast, a, b, cell.among)

    learn(encoder, loss, images, budget, batch=cell.batch, seed=cell.seed)
    found = probed(budget, lambda shown: states_of(encoder, shown))
    more = {**budget.stated, **cell._asdict(), "story": story}
    return made(cell.row, found, "share", device=budget.device, **more)


def unlearnt(name: str, budget: Budget) -> Row:
    """What the probe finds without any learning: in pixels, or in an encoder as it starts."""
    torch.manual_seed(0)
    encoder = Encoder(budget.width).to(budget.device)
    sources: dict[str, Callable[[Tensor], Tensor]] = {
        "pixels": lambda shown: standard(shown).flatten(1),
        "untrained encoder": lambda shown: states_of(encoder, shown),
    }
    return made(name, probed(budget, sources[name]), "share", device=budget.device, **budget.stated)


class Group(NamedTuple):
    """Cells that differ in their seed alone, or the differences of two such groups, seed by seed."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def interval(self) -> float:
        """Half of the 95 % interval of the mean over seeds, infinite for a single one."""
        n = len(self.values)
        return float(stats.t.ppf(0.975, n - 1)) * stdev(self.values) / math.sqrt(n) if n > 1 else math.inf

    def told(self, digits: str) -> str:
        """The mean with its interval, where there are seeds enough for one."""
        if len(self.values) < 2:
            return format(self.mean, digits) if self.values else ""
        return f"{self.mean:{digits}} ± {self.interval:.4f}"


def group(rows: Mapping[str, Row], name: str, size: tuple[int, int], precision: str = "float32") -> Group:
    """An objective's accuracies at (batch, among), in order of seed."""
    wanted = {"objective": name, "batch": size[0], "among": size[1], "precision": precision}
    own = [row for row in rows.values() if wanted.items() <= row.items()]
    return Group(tuple(row["value"] for row in sorted(own, key=lambda row: row["seed"])))


def gain(rows: Mapping[str, Row], size: tuple[int, int], precision: str = "float32") -> Group:
    """FlatNCE's accuracies less NT-Xent's, equal seeds having equal weights and views to begin with."""
    flat, whole = (group(rows, name, size, precision).values for name in ("flat_nce", "nt_xent"))
    return Group(tuple(a - b for a, b in zip(flat, whole, strict=False)))


def sizes(rows: Mapping[str, Row], precision: str = "float32") -> list[tuple[int, int]]:
    """Every (batch, among) that has a difference to show, in order."""
    found = {(row["batch"], row["among"]) for row in rows.values() if row.get("precision") == precision}
    return sorted(size for size in found if gain(rows, size, precision).values)


def table(rows: Mapping[str, Row], precision: str) -> str:
    """Accuracies and the difference that matters, by how many pairs a contrast has."""
    body = []
    for batch, among in sizes(rows, precision):
        found = [group(rows, name, (batch, among), precision) for name in OBJECTIVES]
        difference = gain(rows, (batch, among), precision)
        told = [each.told(".4f") for each in found]
        apart = difference.told("+.4f")
        body.append([f"{among} of {batch}", *told, apart, str(len(difference.values))])
    return markdown([f"pairs in a contrast, {precision}", *OBJECTIVES, "flat_nce - nt_xent", "seeds"], body)


def label_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    """Ticks at the sizes that were run, and nowhere else."""
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()


def draw_accuracy(axes: Axes, rows: Mapping[str, Row]) -> None:
    """Accuracy by batch, every objective, and what is there before any learning."""
    for place, style, name in zip((-1, 0, 1), STYLES, OBJECTIVES, strict=False):
        shown = [(batch, group(rows, name, (batch, batch))) for batch in BATCHES]
        shown = [(batch, found) for batch, found in shown if found.values]
        ends = [(found.mean - min(found.values), max(found.values) - found.mean) for _, found in shown]
        at = [batch * 1.06**place for batch, _ in shown], [found.mean for _, found in shown]
        axes.errorbar(*at, yerr=list(zip(*ends, strict=True)), **style._asdict(), capsize=2, label=name)
    for dash, name in zip((":", "-"), UNLEARNT, strict=True):
        axes.axhline(rows[name]["value"], color="black", lw=0.8, ls=dash, label=name)
    axes.set(xscale="log", xlabel="batch", ylabel="linear probe, accuracy")
    label_sizes(axes, BATCHES)
    axes.set_title("Mean and range over seeds")


def draw_gains(axes: Axes, rows: Mapping[str, Row]) -> None:
    """FlatNCE against NT-Xent, each batch its own steps, and all with the steps of one batch."""
    alike = {(STEPS_ALIKE, among) for among in (*AMONG, STEPS_ALIKE)}
    kinds = {
        "a batch is a contrast": [size for size in sizes(rows) if size[0] == size[1]],
        f"contrasts within batches of {STEPS_ALIKE}": [size for size in sizes(rows) if size in alike],
    }
    for style, (label, shown) in zip(STYLES, kinds.items(), strict=False):
        found = [gain(rows, size) for size in shown]
        at = [among for _, among in shown], [each.mean for each in found]
        bars = [each.interval if len(each.values) > 1 else 0 for each in found]
        if shown:
            axes.errorbar(*at, yerr=bars, **style._asdict(), capsize=2, label=label)
    axes.axhline(0, color="black", lw=0.8)
    axes.set(xscale="log", xlabel="pairs in a contrast", ylabel="accuracy, FlatNCE - NT-Xent")
    label_sizes(axes, (*AMONG[:1], *BATCHES))
    axes.set_title("Paired by seed, 95 % intervals")


def draw_story(axes: Axes, rows: Mapping[str, Row]) -> None:
    """How many negatives count as training goes on, the first seed."""
    lines = itertools.product(("nt_xent", "flat_nce"), HALF_BATCHES)
    for number, (name, batch) in enumerate(lines):
        row = rows.get(Cell(name, batch, batch, "float32", 0).row)
        if row:
            style = STYLES[number % len(HALF_BATCHES)]._replace(linestyle="-" if name == "nt_xent" else "--")
            at = [look["seen"] / 1000 for look in row["story"]], [look["ess"] for look in row["story"]]
            axes.plot(*at, **style._asdict(), label=f"{name}, {batch}")
    axes.set(yscale="log", xlabel="thousand images seen", ylabel="effective negatives, share of all")
    axes.set_title("Effective sample size, seed 0")


def main(words: Sequence[str] | None = None) -> None:
    """Trains what is missing of the then draws and prints what there is."""
    about = (__doc__ or "").splitlines()[0]
    wanted = asked(words, about, RESULTS / "small_batch.json", FIGURES / "small_batch.svg")
    if wanted.budget.seen % max(BATCHES):
        raise SystemExit(f"a multiple of {max(BATCHES)} images is wanted; {wanted.budget.seen} came")
    jobs = {name: partial(unlearnt, name, wanted.budget) for name in UNLEARNT}
    jobs |= {cell.row: partial(measured, cell, wanted.budget) for cell in cells(wanted.seeds)}
    rows = wanted.grid.rows(jobs)
    with panels(wanted.figure, 3, (12, 4.2)) as parts:
        for axes, draw in zip(parts, (draw_accuracy, draw_gains, draw_story), strict=True):
            draw(axes, rows)
            axes.legend(fontsize=7.5)
    print("\n\n".join(table(rows, precision) for precision in PRECISIONS))


if __name__ == "__main__":
    main()
