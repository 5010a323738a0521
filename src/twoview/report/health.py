"""Whether latents and contrasts are well, and what a broken history does: from files beside the ranks.

diagnosis.json    what `twoview diagnose RUN --json` prints
robustness.json   {"metric", "rows": [{"corruption", "share", "mean", "low", "high"}, ...]}
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ..error import RunError
from .block import Block, Facts, Figures, Grid, Section, Words
from .chart import Said
from .figure import Interval, Line, bands, curves
from .material import Group, Material, Run

DIAGNOSIS, ROBUSTNESS = "diagnosis.json", "robustness.json"
PARTS = ("latent", "contrast", "states", "terms")
POINT = ("corruption", "share", "mean", "low", "high")


def health(material: Material) -> Section:
    """The verdict on every run that was diagnosed, and the numbers behind it, a setting at a time."""
    blocks: list[Block] = []
    for place, group in enumerate(material.trained):
        found = [(run, told) for run in group.runs if (told := diagnosed(run)) is not None]
        if not found:
            continue
        rows = [row for run, told in found for row in said(run.entry.seed, told)]
        blocks.append(Facts(rows, title=group.name))
        run, told = found[0]
        for part in PARTS:
            blocks += pieces(
                f"{group.name}, seed {run.entry.seed}: {part}", f"health-{place}-{part}", told.get(part)
            )
    if not blocks:
        path = material.groups[0].runs[0].folder.path
        line = f"No run here was diagnosed. `twoview diagnose {path} --json > {path / DIAGNOSIS}` does it."
        blocks.append(Words(line))
    return Section("health", "Collapse and contrast", blocks)


def diagnosed(run: Run) -> dict[str, Any] | None:
    """A run's diagnosis; None where it has none."""
    found = run.beside(DIAGNOSIS)
    if found is not None and (not isinstance(found, dict) or not isinstance(found.get("verdict"), list)):
        raise RunError(f"{run.folder.path / DIAGNOSIS} wants what `twoview diagnose RUN --json` prints")
    return found


def said(seed: int, diagnosis: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A verdict sign by sign: what is the matter, why, and what to try."""
    return [
        (
            f"seed {seed}: {each['state']}",
            each["because"] + (f"\ntry {each['try']}" if each["try"] != "nothing" else ""),
        )
        for each in diagnosis["verdict"]
    ]


def pieces(title: str, id: str, value: Any) -> Iterator[Block]:
    """A nested table as facts, tables and curves."""
    if not value:
        return
    facts, rows, lists = [], [], []
    for name, each in leaves(value):
        if not isinstance(each, list):
            facts.append((name, text(each)))
        elif each and isinstance(each[0], dict):
            rows.append((name, each))
        elif len(each) > 1:
            lists.append((name, each))
    if facts:
        yield Facts(facts, title=title)
    for name, table in rows:
        columns = tuple(table[0])
        cells = [[text(row.get(column)) for column in columns] for row in table]
        yield Grid(f"{title}, {name}", tuple(column.replace("_", " ") for column in columns), cells)
    if lists:
        yield Figures([curve(title, f"{id}-{number}", *each) for number, each in enumerate(lists)])


def leaves(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Everything in a nested table that is no table, by its whole name."""
    for key, each in value.items():
        name = f"{above} {key}".strip().replace("_", " ")
        if isinstance(each, Mapping):
            yield from leaves(each, name)
        else:
            yield name, each


def text(value: Any) -> str:
    """A number as a reader wants it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)
    )


def curve(title: str, id: str, name: str, values: Sequence[float]) -> Markup:
    """A list of numbers by its place."""
    told = f"{len(values)} values from {min(values):.4g} to {max(values):.4g}"
    line = Line("", range(len(values)), values, 0)
    return curves(Said(id, f"{title}, {name}", told), [line], across=name.split()[-1], up=name)


def robustness(material: Material) -> Section:
    """Each corruption as curves with bands over its share, all settings in one figure."""
    found = [(group, told) for group in material.trained if (told := broken(group)) is not None]
    if not found:
        line = f"No run here holds a {ROBUSTNESS}: what is left of a metric when histories are broken."
        return Section("robustness", "Robustness", [Words(line)])
    metric = found[0][1]["metric"]
    kinds = dict.fromkeys(row["corruption"] for _, told in found for row in told["rows"])
    figures = []
    for number, kind in enumerate(kinds):
        rows = {group.name: points for group, told in found if (points := along(told["rows"], kind))}
        ends = "; ".join(f"{name} from {p[0][1].mean:.4g} to {p[-1][1].mean:.4g}" for name, p in rows.items())
        title = Said(f"robustness-{number}", f"{kind}: {metric} by share of the history", ends)
        figures.append(bands(title, rows, across=f"share of {kind}", up=metric))
    return Section("robustness", "Robustness", [Figures(figures)])


def broken(group: Group) -> dict[str, Any] | None:
    """What the first run of a setting that was tried knows of broken histories."""
    for run in group.runs:
        found = run.beside(ROBUSTNESS)
        if found is None:
            continue
        rows = found.get("rows") if isinstance(found, dict) and "metric" in found else None
        if not rows or not all(isinstance(row, dict) and all(name in row for name in POINT) for row in rows):
            raise RunError(f"{run.folder.path / ROBUSTNESS} wants a metric and rows of {', '.join(POINT)}")
        return dict(found)
    return None


def along(rows: Sequence[Mapping[str, Any]], kind: str) -> list[tuple[float, Interval]]:
    """The points of one corruption, from the smallest share."""
    points = [
        (row["share"], Interval(row["mean"], row["low"], row["high"]))
        for row in rows
        if row["corruption"] == kind
    ]
    return sorted(points)
