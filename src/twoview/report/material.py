"""What a page is made of, read from the plain files of runs: no weights are opened and no model is asked."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..data.store import facts_of
from ..error import DataError, RunError
from ..evaluate.compare import Entry, Setting, comparison, settings
from ..evaluate.metrics import Floats
from ..train.entry import entries
from ..train.folder import RECIPE, Folder


@dataclass(frozen=True, eq=False)
class Run:
    """One finished run: what it was asked, and its folder."""

    entry: Entry
    folder: Folder

    @cached_property
    def card(self) -> dict[str, Any]:
        return self.folder.card()

    @cached_property
    def story(self) -> list[dict[str, Any]]:
        return self.folder.story()

    @property
    def recipe(self) -> str:
        """The recipe as it lies in the folder."""
        return (self.folder.path / RECIPE).read_text(encoding="utf-8")

    def beside(self, name: str) -> Any:
        """What a JSON file of the folder holds; None where there is no such file."""
        if not self.folder.has(name):
            return None
        try:
            return json.loads((self.folder.path / name).read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunError(f"{self.folder.path / name} is no JSON: {error}") from error


@dataclass(frozen=True, eq=False)
class Group:
    """The runs of one setting, by seed."""

    row: Mapping[str, Any]  # of the comparison
    setting: Setting
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        return str(self.row["name"])

    def values(self, metric: str) -> Floats:
        """A metric of every user, the mean over seeds: [users]"""
        mean: Floats = self.setting.values(metric).mean(0)
        return mean


@dataclass(frozen=True, eq=False)
class Material:
    """All runs of a page, one protocol and one data set, and how they compare."""

    paths: tuple[Path, ...]  # as they were named
    compared: Mapping[str, Any]
    groups: tuple[Group, ...]  # best first

    @property
    def sure(self) -> str:
        """How sure the intervals are."""
        return f"{self.compared['confidence']:.0%}"

    @property
    def trained(self) -> list[Group]:
        """The settings that were trained: one that is also asked with a memory stands once, without."""
        plain: dict[str, Group] = {}
        for group in sorted(self.groups, key=lambda group: len(group.name)):
            plain.setdefault(group.runs[0].entry.path, group)
        return [group for group in self.groups if group in plain.values()]

    @property
    def runs(self) -> list[Run]:
        """Every run that was trained, once."""
        return [run for group in self.trained for run in group.runs]

    def data(self) -> dict[str, Any] | None:
        """The card of the data the runs saw; None where it is not to be found any more."""
        folder = self.groups[0].runs[0].card["data"]["folder"]
        try:
            facts = None if folder is None else facts_of(Path(folder))
        except DataError:
            return None
        return facts if facts and facts.get("arrays_md5") == self.compared["data_md5"] else None


def material(paths: Sequence[Path]) -> Material:
    """The runs at or below some paths, refused where they must not share a table."""
    asked = entries(paths)
    compared = comparison(asked)
    found = {(each.runs[0].name, each.runs[0].model): each for each in settings(asked)}
    groups = []
    for row in compared["rows"]:
        setting = found[row["name"], row["model"]]
        runs = tuple(Run(entry, Folder(Path(entry.path))) for entry in setting.runs)
        groups.append(Group(row, setting, runs))
    return Material(tuple(paths), compared, tuple(groups))
