"""Runs on disk as a comparison wants them: grouped by what they were told, whatever their seeds."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..error import RunError
from ..evaluate.compare import Entry
from ..evaluate.protocol import Card
from .folder import CARD, MEMORY, RECIPE, WEIGHTS, Folder, counted, finished_card, folders

Told = tuple[str, ...]

ENSEMBLE = "ensemble"  # the folder beside the runs that it is made of


def entries(paths: Sequence[Path], split: str = "test", *, ensembles: bool = False) -> list[Entry]:
    """Every run at or below the paths, without its memory and with it; their ensembles if wanted."""
    found = [folder for path in paths for folder in folders(path)]
    cards = [finished_card(folder) for folder in found]
    recipes = [(folder.path / RECIPE).read_text(encoding="utf-8") for folder in found]
    told = [_told(card, recipe) for card, recipe in zip(cards, recipes, strict=True)]
    names = _named(told, cards, found)
    entered = [
        entry
        for setting, folder, card in zip(told, found, cards, strict=True)
        for entry in _entered(folder, split, name=names[setting], seed=card["seed"])
    ]
    several = [path for path in paths if len(folders(path)) > 1] or paths  # a lone run stands beside them
    for group in [group for path in several for group in groups(path)] if ensembles else []:
        kept = kept_ensemble(group)
        if kept is None:
            above = group[0].path.parent
            raise RunError(
                f"{above} keeps no ensemble of its runs; `twoview evaluate {above} --ensemble` does"
            )
        setting = told[[folder.path for folder in found].index(group[0].path)]
        name = f"ensemble of {len(group)} {names[setting]}"
        entered += _entered(kept, split, name=name, seed=kept.card()["seeds"][0])
    return entered


def _entered(folder: Folder, split: str, *, name: str, seed: int) -> Iterator[Entry]:
    """What was measured in a folder: without a memory, and with it where there is one."""
    protocol, card = Card(**counted(folder, split)), folder.card()
    for kind, said in (("ranks", ""), ("ranks_memory", " with memory"))[: 1 + ("memory" in card)]:
        yield Entry(
            name=name + said,
            model=card["model"] + said,
            seed=seed,
            card=protocol,
            data_md5=card["data"]["md5"],
            ranks=folder.array(f"{kind}_{split}.npy"),
            cases=folder.array(f"cases_{split}.npy"),
            path=str(folder.path),
        )


def groups(path: Path) -> list[list[Folder]]:
    """The runs of each setting at or below a path, several each; what an ensemble is made of."""
    beside: dict[Path, list[Folder]] = {}
    for folder in folders(path):
        beside.setdefault(folder.path.parent, []).append(folder)
    for above, found in beside.items():
        told = {
            _told(finished_card(each), (each.path / RECIPE).read_text(encoding="utf-8")) for each in found
        }
        if len(found) == 1 or len(told) > 1:
            has = f"{len(found)} of {len(told)} settings" if len(told) > 1 else f"one: {found[0].path.name}"
            raise RunError(f"an ensemble wants several runs of one setting; {above} has {has}")
    return list(beside.values())


def place_of(group: Sequence[Folder]) -> Path:
    """Where the ensemble of some runs is kept."""
    return group[0].path.parent / ENSEMBLE


def members(group: Sequence[Folder]) -> dict[str, str]:
    """The md5 of what each run of an ensemble scores with."""
    parts = (WEIGHTS, MEMORY)
    found = {}
    for folder in group:
        held = [(folder.path / name).read_bytes() for name in parts if folder.has(name)]
        found[folder.path.name] = hashlib.md5(b"".join(held), usedforsecurity=False).hexdigest()
    return found


def kept_ensemble(group: Sequence[Folder]) -> Folder | None:
    """The measured ensemble of some runs, unless there is none or one of them has changed since."""
    folder = Folder(place_of(group))
    known = folder.has(CARD) and folder.card()["members"] == members(group)
    return folder if known else None


def _told(card: dict[str, Any], recipe: str) -> Told:
    """What makes two runs one setting: the recipe, the data, and how they were parted and counted."""
    how = card["how"]
    return card["model"], recipe, card["data"]["md5"], how["protocol"], how["seen"]


def _named(told: Sequence[Told], cards: Sequence[dict[str, Any]], found: Sequence[Folder]) -> dict[Told, str]:
    """A name for each setting: model, recipe, what was swept; where two share it, the folder as well."""
    names: dict[Told, str] = {}
    for setting, card, folder in zip(told, cards, found, strict=True):
        if setting in names:
            continue
        said = [card["model"], "" if card["recipe"] == "best" else card["recipe"], *card["how"]["set"]]
        said = said[:2] + ([card["setting"]] if card["setting"] else said[2:])
        name = " ".join(filter(None, said))
        names[setting] = name if name not in names.values() else f"{name} ({folder.path})"
    return names
