"""A finished run: opened without the data, asked for items, measured from its ranks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from rich.table import Table
from torch import Tensor

from ..data.log import Log
from ..error import RunError
from ..evaluate.metrics import CUTOFFS, metrics
from ..evaluate.protocol import Card
from ..models.base import Facts, Model
from .folder import WEIGHTS, Folder, counted, finished_card
from .group import resume_all, train_all
from .plan import Plan, planned_again
from .recommend import Counter, Recommended, asked_log
from .told import QUIET, Voice
from .training import built


class Run:
    """A model with its folder."""

    def __init__(self, folder: Folder, plan: Plan, facts: Facts, model: Model) -> None:
        self.folder, self.plan, self.facts, self.model = folder, plan, facts, model

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
        return run

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
    found = metrics(folder.array(f"ranks_{split}.npy"), folder.array(f"cases_{split}.npy"))
    model = folder.card()["model"]
    return {"run": str(folder.path), "model": model, "protocol": protocol, "metrics": found}


def drawn(found: Mapping[str, Any]) -> Table:
    """An evaluation for a terminal: a row a cut-off, and under it the card."""
    table = Table("", "recall", "ndcg", title=f"{found['run']} ({found['model']})", title_justify="left")
    for k in CUTOFFS:
        table.add_row(
            f"@{k}", f"{found['metrics'][f'recall@{k}']:.5f}", f"{found['metrics'][f'ndcg@{k}']:.5f}"
        )
    table.add_row("mrr", f"{found['metrics']['mrr']:.5f}", "")
    table.caption, table.caption_justify = "\n".join(Card(**found["protocol"]).lines()), "left"
    return table
