"""The held-out cases of a finished run, asked again: the same cases of the same data, or none."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.column import Ints
from ..data.log import Log
from ..data.split import Cases, split
from ..error import ProtocolError, RunError
from ..evaluate.convention import Seen
from ..evaluate.ranks import SEEN, Questions, cases_table
from ..train.run import Run
from ..train.training import data_folder
from ..types import Recommender


@dataclass(frozen=True, eq=False)
class Held:
    """A run, the cases that it was measured by, and what it was trained on."""

    run: Run
    split: str
    cases: Cases
    train: Log

    @property
    def model(self) -> Recommender:
        """What the run answers with: its model, or the mixture that it is in."""
        return self.run.recommender

    @property
    def seen(self) -> str:
        """What happens to items that a user met before."""
        return self.run.plan.how.seen

    @property
    def table(self) -> Ints:
        """User, target, items shown and training events of the target: [C, 4]"""
        return cases_table(self.cases, self.train)

    def questions(self, cases: Cases | None = None, *, seen: Seen | None = None) -> Questions:
        """The cases, or others of the same users, as the run's model is asked them."""
        max_len, room = self.run.plan.recipe.rows.max_len, self.run.model.room
        return Questions(cases or self.cases, max_len=max_len, room=room, seen=seen or SEEN[self.seen])


def held(run: Run, split_: str = "test", data: Path | Log | None = None) -> Held:
    """The test or valid cases of a run; refused where the data are not those it was measured on."""
    card = run.folder.card()
    log = data if isinstance(data, Log) else Log.open(data_folder(card, data))
    if log.arrays_md5 != card["data"]["md5"]:
        raise RunError(f"{run.path} was measured on data {card['data']['md5']}; {log.arrays_md5} came")
    parts = split(log, run.plan.how.protocol)
    if split_ not in parts.held:
        there = ", ".join(parts.held) or "none"
        raise ProtocolError(f"{run.path} asked nothing in {split_!r}; of its splits there are {there}")
    found = Held(run, split_, parts.held[split_], parts.train)
    if not np.array_equal(found.table, run.folder.array(f"cases_{split_}.npy")):
        raise RunError(f"{run.path} was asked other cases than its data give now; train it again")
    return found
