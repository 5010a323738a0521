"""Runs on disk as a comparison wants them: grouped by what they were told, whatever their seeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..evaluate.compare import Entry
from ..evaluate.protocol import Card
from .folder import RECIPE, Folder, counted, finished_card, folders

Told = tuple[str, ...]


def entries(paths: Sequence[Path], split: str = "test") -> list[Entry]:
    """Every run at or below the paths."""
    found = [folder for path in paths for folder in folders(path)]
    cards = [finished_card(folder) for folder in found]
    recipes = [(folder.path / RECIPE).read_text(encoding="utf-8") for folder in found]
    told = [_told(card, recipe) for card, recipe in zip(cards, recipes, strict=True)]
    names = _named(told, cards, found)
    return [
        Entry(
            name=names[setting],
            model=card["model"],
            seed=card["seed"],
            card=Card(**counted(folder, split)),
            data_md5=card["data"]["md5"],
            ranks=folder.array(f"ranks_{split}.npy"),
            cases=folder.array(f"cases_{split}.npy"),
            path=str(folder.path),
        )
        for setting, folder, card in zip(told, found, cards, strict=True)
    ]


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
