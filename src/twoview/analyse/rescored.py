"""Runs counted as we count or as others do: what a convention moves, and which models change places."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from ..error import ProtocolError
from ..evaluate.compare import Entry, comparison, ranked, settings
from ..evaluate.metrics import means
from ..evaluate.protocol import Card
from ..train.entry import entries


@dataclass(frozen=True, kw_only=True)
class Request:
    """How runs are to be counted."""

    split: str = "test"
    counted_as: str | None = None  # a convention's name; None: as we count
    against: str | None = None  # the setting that all others are compared with
    ensembles: bool = False
    data: Path | None = None  # where the data are, if not where a run's card says
    own: str | None = None  # the file of a model of the user's own


def evaluations(path: Path, request: Request) -> list[dict[str, Any]]:
    """What every run at or below a path is worth; counted otherwise, also how far that moves it from ours."""
    if request.counted_as is None:
        from ..train.ensemble import evaluations as ours

        together = request.ensembles
        return ours(path, request.split, ensembles=together, data=request.data, model=request.own)
    return [_beside(ours, theirs) for ours, theirs in _pairs([path], request, request.counted_as)]


def compared(paths: Sequence[Path], request: Request) -> dict[str, Any]:
    """A comparison of runs; counted otherwise, also the order of the settings both ways."""
    name, against = request.counted_as, request.against
    if name is None:
        return comparison(entries(paths, request.split, ensembles=request.ensembles), against)
    both = zip(*_pairs(paths, request, name), strict=True)
    ours, theirs = (list(each) for each in both)
    order, other = ([setting.name for setting in ranked(settings(each))] for each in (ours, theirs))
    turned = [[a, b] for i, a in enumerate(order) for b in order[i + 1 :] if other.index(b) < other.index(a)]
    return comparison(theirs, against) | {"order": {"ours": order, name: other}, "turned": turned}


def _pairs(paths: Sequence[Path], request: Request, name: str) -> list[tuple[Entry, Entry]]:
    """Every run as we count it and as others do."""
    if request.ensembles:
        raise ProtocolError(f"an ensemble is counted our way alone; {name} wants single runs")
    return [(ours, _otherwise(ours, request, name)) for ours in entries(paths, request.split)]


def _otherwise(entry: Entry, request: Request, name: str) -> Entry:
    """A run's entry under a convention; its model is asked again where the saved ranks do not tell."""
    from ..evaluate.convention import convention  # torch, which a comparison of saved ranks does without

    how = convention(name)
    theirs = replace(entry, card=how.card(entry.card), counted=how.worth)
    if how.ranks is None:
        return theirs
    from ..train.run import Run
    from .held import held

    found = held(Run.open(entry.path, model=request.own), request.split, request.data)
    alone = entry.model == found.run.plan.file.name  # else with its memory
    model = found.run.model if alone else found.run.recommender
    return replace(theirs, ranks=how.ranks(model, lambda seen: found.questions(seen=seen)))


def _beside(ours: Entry, theirs: Entry) -> dict[str, Any]:
    own, other = (means(e.counted(e.ranks, e.cases, e.card.candidates), e.cases) for e in (ours, theirs))
    return {
        "run": ours.path,
        "model": ours.model,
        "protocol": asdict(theirs.card),
        "metrics": other,
        "moved": {name: other[name] / own[name] - 1 for name in other if own.get(name)},
    }


def drawn(every: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """Evaluations for a terminal; those counted otherwise with their distance from ours."""
    from ..train.run import drawn as plainly

    for found in every:
        if "moved" not in found:
            yield plainly(found)
            continue
        table = Table(f"{found['run']} ({found['model']})", "", "from ours", box=None, pad_edge=False)
        for name, value in found["metrics"].items():
            moved = found["moved"].get(name)
            table.add_row(name, f"{value:.5f}", "-" if moved is None else f"{moved:+.1%}")
        yield table
        yield from Card(**found["protocol"]).lines()
