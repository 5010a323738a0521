"""A finished run: opened without the data, asked for items, measured from its ranks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from rich.console import Group
from rich.table import Table
from rich.text import Text
from torch import Tensor

from ..data.log import Log
from ..error import RunError
from ..evaluate.metrics import CUTOFFS, metrics
from ..evaluate.mixture import Remembering
from ..evaluate.protocol import Card
from ..models.base import Facts, Model
from ..types import Recommender
from .folder import WEIGHTS, Folder, counted, finished_card
from .group import resume_all, train_all
from .memory import reopened
from .plan import Plan, planned_again
from .recommend import Counter, Recommended, asked_log
from .told import QUIET, Voice
from .training import built

SHOWN = ("recall@20", "ndcg@20", "recall@40", "ndcg@40")


class Run:
    """A model with its folder."""

    def __init__(self, folder: Folder, plan: Plan, facts: Facts, model: Model) -> None:
        self.folder, self.plan, self.facts, self.model = folder, plan, facts, model
        self.title = str(folder.path)
        self.memory: Model | None = None
        self.recommender: Recommender = model  # what is asked: the model, or a mixture that it is in

    @property
    def path(self) -> Path:
        return self.folder.path

    @classmethod
    def train(
        cls,
        model: str,
        log: Log | str | Path,
        out: str | Path | None = None,
        *,
        voice: Voice = QUIET,
        **told: Any,
    ) -> Self:
        """Trains a model on a log or a prepared folder; of several seeds or settings the last comes back.

        Keywords are those of `twoview train`: recipe, set, protocol, seen, seed, seeds, device, epochs.
        """
        data = None if isinstance(log, Log) else Path(log)
        known = log if isinstance(log, Log) else Log.open(log)
        out = Path(out or f"runs/{Path(model).stem}")
        *_, last = train_all(model, known, out, data=data, voice=voice, **told)
        return cls.open(last, model=model if model.endswith(".py") else None)

    @classmethod
    def resume(cls, path: str | Path, *, data: Path | None = None, model: str | None = None) -> list[Self]:
        """Goes on with every unfinished run at or below a folder."""
        done = list(resume_all(Path(path), data=data, model=model, voice=QUIET))
        return [cls.open(each, model=model) for each in done]

    @classmethod
    def open(cls, path: str | Path, *, model: str | None = None) -> Self:
        """The run in a folder, ready to be asked; needs no data."""
        folder = Folder(Path(path))
        card = finished_card(folder)
        plan, facts = planned_again(card, folder.recipe(), model), Facts(**card["facts"])
        run = cls(folder, plan, facts, built(plan, facts))
        run._load(folder.tensors(WEIGHTS)[0])
        if "memory" in card:
            run.memory, told = reopened(folder, facts), card["memory"]
            run.recommender = Remembering(
                run.model, run.memory, told["weight"], temperature=told["temperature"]
            )
        return run

    def to(self, device: torch.device) -> None:
        """Brings the run to a device."""
        self.model.to(device)
        if self.memory is not None:
            self.memory.to(device)

    def _load(self, weights: dict[str, Tensor]) -> None:
        try:
            self.model.load_state_dict(weights)
        except RuntimeError as error:
            wrong = " ".join(str(error).split())[:200]
            raise RunError(f"{self.path / WEIGHTS} does not fit {self.plan.file.name}: {wrong}") from error
        self.model.eval()

    def recommend(
        self,
        *,
        user: str | None = None,
        items: Sequence[str] | None = None,
        k: int = 10,
        keep_seen: bool = False,
        data: Log | str | Path | None = None,
    ) -> list[Recommended]:
        """The k best for a user of the data, or for a stranger who chose the items, oldest first."""
        counter = Counter(self, keep_seen=keep_seen)
        if (user is None) == (items is None):
            raise RunError("recommend wants a user or items, one of them")
        if items is not None:
            return counter.for_items(items, k)
        log = data if isinstance(data, Log) else asked_log(self, Path(data) if data else None)
        ((_, found),) = counter.for_users(log, [str(user)], k)
        return found

    def evaluate(self, split: str = "test") -> dict[str, Any]:
        """What the run's ranks are worth, with the protocol they were counted under."""
        return evaluation(self.folder, split)


def evaluation(folder: Folder, split: str = "test") -> dict[str, Any]:
    """A run's metrics from its saved ranks: no model, no data."""
    protocol = counted(folder, split)
    card, cases = folder.card(), folder.array(f"cases_{split}.npy")
    found: dict[str, Any] = {"metrics": metrics(folder.array(f"ranks_{split}.npy"), cases)}
    if "memory" in card:
        worth = metrics(folder.array(f"ranks_memory_{split}.npy"), cases)
        found["memory"] = {"weight": card["memory"]["weight"], "metrics": worth}
    return {"run": str(folder.path), "model": card["model"], "protocol": protocol, **found}


def drawn(found: Mapping[str, Any]) -> Group:
    """An evaluation for a terminal: a row a cut-off, a row for each mixture it is in, and the card."""
    seeds, rows = found["protocol"]["seeds"], dict(_worths(found, found["model"]))
    mean = f", mean of {len(seeds)} seeds" if len(seeds) > 1 else ""
    table, beside = Table("", "recall", "ndcg"), Table("", *SHOWN)
    for k in CUTOFFS:
        table.add_row(
            f"@{k}", f"{found['metrics'][f'recall@{k}']:.5f}", f"{found['metrics'][f'ndcg@{k}']:.5f}"
        )
    table.add_row("mrr", f"{found['metrics']['mrr']:.5f}", "")
    for name, worth in rows.items():
        beside.add_row(name, *(f"{worth[metric]:.5f}" for metric in SHOWN))
    title, card = f"{found['run']} ({found['model']}{mean})", "\n".join(Card(**found["protocol"]).lines())
    return Group(Text(title), table, *[beside][: len(rows) - 1], Text(card))


def _worths(found: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, float]]]:
    """The metrics of a run, of it with a memory, and of the ensemble it belongs to, by name."""
    yield name, found["metrics"]
    if "memory" in found:
        yield f"{name} with memory (weight {found['memory']['weight']:.2g})", found["memory"]["metrics"]
    if "ensemble" in found:
        yield from _worths(found["ensemble"], found["ensemble"]["name"])
