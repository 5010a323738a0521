"""The run folder: plain files, each written beside and renamed, no pickle among them.

recipe.toml           everything the run was told                weights.safetensors   the selected weights
card.json             where, on what, how long, how it counts    ranks_*.npy           [cases, 2] above, tied
story.jsonl           a line per epoch                           cases_*.npy           [cases, 4]
items.txt titles.txt  what the item numbers mean                 state.safetensors     while it trains
memory.safetensors    counts beside the weights, if wanted     examples.json        what a few users see
"""

import json
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from ..data.column import Ints
from ..data.store import lines_of
from ..error import ProtocolError, RunError

if TYPE_CHECKING:
    from torch import Tensor

RECIPE, CARD, STORY, WEIGHTS, STATE, MEMORY, EXAMPLES = (
    "recipe.toml",
    "card.json",
    "story.jsonl",
    "weights.safetensors",
    "state.safetensors",
    "memory.safetensors",
    "examples.json",
)


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A path to write; it takes the place of `path` when all is written, and is gone if anything fails."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        os.replace(part, path)  # noqa: PTH105
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror or error}") from error
    except SafetensorError as error:
        raise RunError(f"{path} could not be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)


class Folder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do, a memory that is wanted included."""
        card = self.card()
        return bool(card.get("finished")) and ("memory" in card or not card["how"].get("memory"))

    def write_text(self, name: str, text: str) -> None:
        with beside(self.path / name) as part:
            part.write_text(text, encoding="utf-8")

    def write_lines(self, name: str, lines: Sequence[str]) -> None:
        self.write_text(name, "".join(f"{line}\n" for line in lines))

    def write_card(self, card: Mapping[str, Any]) -> None:
        self.write_text(CARD, json.dumps(card, indent=1, ensure_ascii=False) + "\n")

    def write_array(self, name: str, array: Ints) -> None:
        with beside(self.path / name) as part, part.open("wb") as file:
            np.save(file, array, allow_pickle=False)

    def write_tensors(
        self, name: str, tensors: "Mapping[str, Tensor]", notes: Mapping[str, str] | None = None
    ) -> None:
        from safetensors.torch import save_file  # torch: what only reads a run does without

        plain = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        with beside(self.path / name) as part:
            save_file(plain, part, metadata=dict(notes) if notes else None)

    def add_to_story(self, record: Mapping[str, Any]) -> None:
        try:
            with (self.path / STORY).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise RunError(f"{self.path / STORY} could not be written: {error.strerror or error}") from error

    def cut_story(self, epochs: int) -> None:
        """Keeps the lines of the first epochs, as a resumed run wants it."""
        kept = [json.dumps(record) for record in self.story() if record["epoch"] <= epochs]
        self.write_lines(STORY, kept)

    def story(self) -> list[dict[str, Any]]:
        path = self.path / STORY
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        whole = [line for line in lines if line.endswith("}")]  # the last may have been cut off with the run
        return [json.loads(line) for line in whole]

    def card(self) -> dict[str, Any]:
        try:
            card: dict[str, Any] = json.loads(self._wanted(CARD).read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunError(f"{self.path / CARD} is no run card: {error}") from error
        return card

    def recipe(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._wanted(RECIPE).read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunError(f"{self.path / RECIPE} is no recipe: {error}") from error

    def lines(self, name: str) -> list[str]:
        return lines_of(self._wanted(name))

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def array(self, name: str) -> Ints:
        """An array that the run saved."""
        path = self._wanted(name)
        try:
            array: Ints = np.load(path, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise RunError(f"{path} is no whole array: {' '.join(str(error).split())}") from error
        return array

    def tensors(self, name: str) -> "tuple[dict[str, Tensor], dict[str, str]]":
        """The tensors of a file and its notes."""
        path = self._wanted(name)
        try:
            with safe_open(path, framework="pt") as file:
                return {key: file.get_tensor(key) for key in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise RunError(f"{path} was cut short or is no safetensors file: {error}") from error

    def _wanted(self, name: str) -> Path:
        path = self.path / name
        if path.is_file():
            return path
        if not self.path.exists():
            raise RunError(f"a run was wanted at {self.path}; there is nothing")
        found = sorted(each.name for each in self.path.iterdir()) if self.path.is_dir() else [self.path.name]
        has = ", ".join(found[:8]) or "nothing"
        raise RunError(f"{self.path} is no whole run: it lacks {name}; it has {has}")


def make_room(path: Path, *, force: bool) -> None:
    """Nothing stands at the path any more; runs that did are removed only if force says so."""
    if not os.path.lexists(path):
        return
    if not force:
        raise RunError(f"{path} exists; choose another folder or replace it with --force")
    if not path.is_dir() or (any(path.iterdir()) and not any(path.rglob(RECIPE))):
        raise RunError(f"{path} is not replaced even with --force: it exists and holds no run")
    shutil.rmtree(path)


def folders(path: Path) -> list[Folder]:
    """The run at a path, or every run below it, by name."""
    if (path / CARD).is_file() and (path / RECIPE).is_file():
        return [Folder(path)]
    below = sorted(card.parent for card in path.rglob(CARD) if (card.parent / RECIPE).is_file())
    below = [
        each for each in below if not (each.parent / RECIPE).is_file()
    ]  # what a run started from is its own
    if not below:
        Folder(path)._wanted(CARD)
    return [Folder(each) for each in below]


def finished_card(folder: Folder) -> dict[str, Any]:
    """The card of a run that is done."""
    card = folder.card()
    if not card.get("finished"):
        raise RunError(
            f"{folder.path} is not finished; `twoview train --resume {folder.path}` goes on with it"
        )
    return card


def counted(folder: Folder, split: str) -> dict[str, Any]:
    """How a finished run counted a split, as its card says."""
    card = finished_card(folder)
    if split not in card["protocol"]:
        protocol = card["how"]["protocol"]
        raise ProtocolError(f"{folder.path} asked nothing in {split}; it was trained under {protocol}")
    told: dict[str, Any] = card["protocol"][split]
    return told
