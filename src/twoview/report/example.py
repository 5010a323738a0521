"""What a run recommends to a few users, by title, from the file it wrote: `examples.json`."""

from collections.abc import Mapping
from typing import Any

from ..error import RunError
from .block import Block, Example, Section, Words
from .material import Group, Material

FILE = "examples.json"
WANTED = ("user", "history", "target", "recommended")
USERS = 6


def examples(material: Material) -> Section:
    """The best setting's examples, or how to see one."""
    told = next(((group, found) for group in material.groups if (found := of(group)) is not None), None)
    if told is None:
        path = material.groups[0].runs[0].folder.path
        line = f"No run here holds an {FILE}. `twoview recommend {path} --user ID` shows what one user gets."
        return Section("examples", "Examples", [Words(line)])
    group, found = told
    line = f"From {group.name}: what validation users chose last, what was recommended, what they chose next."
    blocks: list[Block] = [Words(line), *(shown(each) for each in found[:USERS])]
    return Section("examples", "Examples", blocks)


def of(group: Group) -> list[Mapping[str, Any]] | None:
    """The examples in the first folder of a setting that has them."""
    for run in group.runs:
        found = run.beside(FILE)
        if found is None:
            continue
        if not isinstance(found, list) or not all(
            isinstance(each, dict) and all(name in each for name in WANTED) for each in found
        ):
            raise RunError(f"{run.folder.path / FILE} wants a list of {{{', '.join(WANTED)}}}")
        return found
    return None


def shown(example: Mapping[str, Any]) -> Example:
    """An example with titles where there are any, ids elsewhere."""
    items = [(name(each), f"{each['score']:.2f}") for each in example["recommended"]]
    history = [name(each) for each in example["history"]]
    return Example(f"User {example['user']}", history, name(example["target"]), items)


def name(item: Mapping[str, Any]) -> str:
    """An item's title, or its id."""
    return str(item.get("title") or item["id"])
