"""How the runs learned: validation by epoch, every term of every loss, seeds side by side."""

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from ..train.told import BESIDE
from .block import Block, Figures, Section, Words, listed, short
from .chart import Said
from .figure import Line, curves, stacked
from .material import Group, Material, Run

VALIDATION = "validation"
COUNTED = ("recall@", "ndcg@", "mrr")  # what a validation measures beside


def learning(material: Material) -> Section:
    """Validation of all settings in one figure, the terms of each in another."""
    trained = [group for group in material.trained if any(len(run.story) > 1 for run in group.runs)]
    still = [group.name for group in material.trained if group not in trained]
    figures = [validated(trained)] if any(VALIDATION in each for each in stories(trained)) else []
    figures += [terms(group, number) for number, group in enumerate(trained) if names(group)]
    blocks: list[Block] = [Figures(figures)] if figures else []
    if figures:
        blocks.append(
            Words("A ring marks the epoch whose weights were selected, on validation alone.", aside=True)
        )
    if still:
        verb = "has" if len(still) == 1 else "have"
        blocks.append(Words(f"{listed(still)} {verb} no curve: one epoch or none.", aside=True))
    return Section("learning", "Learning", blocks)


def stories(groups: list[Group]) -> list[dict[str, Any]]:
    """Every epoch of every run."""
    return [record for group in groups for run in group.runs for record in run.story]


def names(group: Group) -> list[str]:
    """What was told of each epoch beside time and validation: the terms."""
    told = dict.fromkeys(name for record in stories([group]) for name in record)
    return [name for name in told if name not in (*BESIDE, VALIDATION) and not name.startswith(COUNTED)]


def validated(groups: list[Group]) -> Markup:
    """The number that selects, by epoch."""
    lines = [
        line
        for look, group in enumerate(groups)
        for run in group.runs
        for line in followed(run, VALIDATION, group.name, look)
    ]
    best: dict[str, float] = {}
    for line in lines:
        best[line.name] = max(best.get(line.name, 0.0), *line.y)
    told = "; ".join(f"{name} reaches {short(value)}" for name, value in best.items())
    said = Said("validation", "Validation ndcg@20 by epoch", told)
    return curves(said, lines, across="epoch", up="ndcg@20")


def terms(group: Group, number: int) -> Markup:
    """Every term of a setting's loss by epoch, a panel each."""
    parts = {
        name: [
            line
            for look, run in enumerate(group.runs)
            for line in followed(run, name, f"seed {run.entry.seed}", look)
        ]
        for name in names(group)
    }
    ends = {name: (lines[0].y[0], lines[0].y[-1]) for name, lines in parts.items()}
    told = "; ".join(f"{name} from {first:.4g} to {last:.4g}" for name, (first, last) in ends.items())
    said = Said(f"terms-{number}", f"{group.name}: terms of the loss by epoch", told)
    return stacked(said, parts, across="epoch")


def followed(run: Run, term: str, name: str, look: int) -> Iterator[Line]:
    """A number of a run's story by epoch, the selected epoch marked; nothing where it was never told."""
    told = [(record["epoch"], record[term]) for record in run.story if term in record]
    if told:
        x, y = zip(*told, strict=True)
        best = run.card["best_epoch"]
        yield Line(name, x, y, look, x.index(best) if best in x else None)
