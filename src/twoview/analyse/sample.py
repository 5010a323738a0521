"""What a diagnosis looks at: a seeded share of the validation cases, never a test case."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..data.column import Ints
from ..data.log import Log
from ..data.split import Cases, split
from ..error import ProtocolError
from ..evaluate.ranks import SEEN, Questions, cases_table
from ..train.recommend import Counter
from ..train.run import Run
from ..train.training import data_folder

HISTORIES, PLACES = 4096, 1 << 16  # looked at, at most


@dataclass(frozen=True)
class Sample:
    """Some held-out cases and the log that the run was trained on."""

    split: str  # valid, or train where nothing was held out
    questions: Questions
    cases: Ints  # [C, 4] user, target, events shown, training events of the target
    newest: Ints  # [C] training events of the newest item shown
    asked: Ints  # [C] how many cases of the whole split have this target
    train: Log | None  # None where another log came than the run was trained on
    dropped: int  # events of items that the run does not know

    def __len__(self) -> int:
        return len(self.cases)


def sample(run: Run, data: Path | Log | None = None, *, seed: int = 0) -> Sample:
    """Validation cases of a run; under `all` the training events that validation would have had."""
    card = run.folder.card()
    log = data if isinstance(data, Log) else Log.open(data_folder(card, data))
    own = log.arrays_md5 == card["data"]["md5"]
    known = Counter(run).matched(log)
    parts = split(known, run.plan.how.protocol)
    held = parts if len(parts.valid) else split(known, "leave-one-out")
    every = held.valid if own else _strangers(held.valid)
    if not every.known.all() and not run.plan.file.model.claims.folds_in:
        n = int((~every.known).sum())
        raise ProtocolError(f"{run.plan.file.name} knows trained users alone; the data asks for {n} others")
    max_len, room = run.plan.recipe.rows.max_len, run.model.room
    some = chosen(every, max_len, seed)
    trained = np.bincount(parts.train.items, minlength=known.n_items)
    return Sample(
        split="valid" if len(parts.valid) else "train",
        questions=Questions(some, max_len=max_len, room=room, seen=SEEN[run.plan.how.seen]),
        cases=cases_table(some, parts.train),
        newest=trained[known.items[some.places - 1]],
        asked=np.bincount(every.targets, minlength=known.n_items)[some.targets],
        train=parts.train if own else None,
        dropped=log.n_events - known.n_events,
    )


def chosen(cases: Cases, max_len: int, seed: int) -> Cases:
    """Cases at random, as many as the bounds on histories and on places allow."""
    if len(cases) < 2:
        raise ProtocolError(f"a diagnosis wants two cases or more to compare; {len(cases)} came")
    order = np.random.default_rng(seed).permutation(len(cases))[:HISTORIES]
    n_places = np.cumsum(np.minimum(cases.shown, max_len)[order])
    which = np.sort(order[: max(2, int((n_places <= PLACES).sum()))])
    return cases.some(which)


def _strangers(cases: Cases) -> Cases:
    return replace(cases, known=np.zeros(len(cases), dtype=bool))
