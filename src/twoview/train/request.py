"""What `twoview train` asks for: a new run, or one to go on with; each done is told in a line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.log import Log
from ..error import Interrupted, ProtocolError, RunError
from .folder import Folder, folders
from .group import resume_all, train_all, wants_memory
from .run import SHOWN, evaluation
from .told import Voice


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which model on which data into which folder; or which run to go on with."""

    model: str
    data: Path | None
    out: Path | None
    resume: Path | None
    own: str | None  # the file of a user's model, for a run that goes on
    told: Mapping[str, Any]  # how to train

    def __post_init__(self) -> None:
        wanted = (("MODEL", self.model), ("DATA", self.data), ("--out", self.out))
        missing = [name for name, came in wanted if not came]
        if missing and self.resume is None:
            verb = "is" if len(missing) == 1 else "are"
            raise RunError(
                f"train wants MODEL DATA --out RUN, or --resume RUN; {', '.join(missing)} {verb} missing"
            )


def answered(request: Request, voice: Voice) -> Iterator[str]:
    """Trains what is wanted, a line for each run done; an interruption says how to go on."""
    path = request.resume or request.out or Path()
    try:
        yield from _resumed(path, request, voice) if request.resume else _trained(path, request, voice)
    except KeyboardInterrupt:
        if not path.exists():
            raise
        raise Interrupted(f"interrupted; `twoview train --resume {path}` goes on") from None


def _trained(out: Path, request: Request, voice: Voice) -> Iterator[str]:
    log = Log.open(request.data or Path())
    for each in train_all(request.model, log, out, data=request.data, voice=voice, **request.told):
        yield outcome(each)


def _resumed(path: Path, request: Request, voice: Voice) -> Iterator[str]:
    if request.told.get("memory"):
        wants_memory(path)
    left = [folder for folder in folders(path) if not folder.finished]
    if not left:
        yield f"{path}: {len(folders(path))} finished, nothing to go on with"
    for each in resume_all(path, data=request.data, model=request.own, voice=voice):
        yield outcome(each)


def outcome(path: Path) -> str:
    """A run in one line."""
    card = Folder(path).card()
    seconds = f"{card['epochs']} epochs, {card['seconds']:.1f} s"
    try:
        found = evaluation(Folder(path))
    except ProtocolError:
        return f"{path}: trained on everything, {seconds}"
    worth = _worth(found["metrics"])
    if "memory" in found:
        worth += f"; with memory {_worth(found['memory']['metrics'])}"
    return f"{path}: {worth}  (test; best of {card['best_epoch']}, {seconds})"


def _worth(found: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {found[name]:.4f}" for name in SHOWN)
