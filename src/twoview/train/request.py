"""What `twoview train` asks for: a new run, or one to go on with; each done is told in a line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..data.log import Log
from ..error import Interrupted, ProtocolError, RunError
from .folder import Folder, folders
from .run import evaluation
from .told import MakeTeller
from .training import resume_all, train_all


def requested(
    model: str,
    data: Path | None,
    out: Path | None,
    *,
    resume: Path | None,
    own: str | None,
    teller: MakeTeller,
    told: Mapping[str, Any],
) -> Iterator[str]:
    """Trains what is wanted, and says of each run what it is worth; an interruption says how to go on."""
    if resume is None and not (model and data and out):
        missing = [name for name, came in (("MODEL", model), ("DATA", data), ("--out", out)) if not came]
        raise RunError(f"train wants MODEL DATA --out RUN, or --resume RUN; {', '.join(missing)} is missing")
    path = resume or out
    assert path is not None
    try:
        if resume is not None:
            done = list(resume_all(resume, data=data, model=own, teller=teller))
            yield from map(outcome, done)
            if not done:
                yield f"{resume}: {len(folders(resume))} finished, nothing to go on with"
            return
        assert data is not None and out is not None
        for each in train_all(model, Log.open(data), out, data=data, teller=teller, **told):
            yield outcome(each)
    except KeyboardInterrupt:
        if not path.exists():
            raise
        raise Interrupted(f"interrupted; `twoview train --resume {path}` goes on") from None


def outcome(path: Path) -> str:
    """A run in one line."""
    card = Folder(path).card()
    seconds = f"{card['epochs']} epochs, {card['seconds']:.1f} s"
    try:
        found = evaluation(Folder(path))["metrics"]
    except ProtocolError:
        return f"{path}: trained on everything, {seconds}"
    worth = "  ".join(
        f"{name} {found[name]:.4f}" for name in ("recall@20", "ndcg@20", "recall@40", "ndcg@40")
    )
    return f"{path}: {worth}  (test; best of {card['best_epoch']}, {seconds})"
