"""All runs that are asked for: begun together, finished side by side on a CPU, in turn elsewhere."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..data.log import Log
from ..data.split import Split, split
from ..error import ProtocolError
from .abreast import cores, side_by_side, threads_each
from .folder import folders, make_room
from .plan import Plan, device_of, how, planned_again, plans
from .told import Voice
from .training import Making, own_log


def train_all(
    model: str, log: Log, out: Path, *, data: Path | None, voice: Voice, **told: Any
) -> Iterator[Path]:
    """Trains every seed and setting that is asked for, in turn; the folder of each when it is done."""
    wanted = how(**told)
    found, sentence = plans(model, log.source_md5, wanted)
    device_of(wanted.device)
    parts = answerable(split(log, wanted.protocol), found[0][1])
    makings = [Making(plan, parts, out / below) for below, plan in found]
    make_room(out, force=wanted.force)
    for making in makings:
        making.begin(log, data, threads=threads_each(len(makings) if data else 1))
    yield from finished(makings, sentence, data, voice)


def resume_all(path: Path, *, data: Path | None, model: str | None, voice: Voice) -> Iterator[Path]:
    """Goes on with every unfinished run at or below a folder; finished ones are left alone."""
    makings = []
    for folder in folders(path):
        card = folder.card()
        if folder.finished:
            continue
        log = own_log(folder, data)
        plan = planned_again(card, folder.recipe(), model)
        makings.append(Making(plan, answerable(split(log, plan.how.protocol), plan), folder.path))
    yield from finished(makings, "resumed", data, voice)


def finished(makings: Sequence["Making"], said: str, data: Path | None, voice: Voice) -> Iterator[Path]:
    """Each run as it is done: side by side on a CPU, in turn elsewhere and where the log is in memory."""
    crowd = len(makings) > 1 and makings[0].device.type == "cpu" and cores() > 1
    if crowd and all(making.folder.card()["data"]["folder"] or data for making in makings):
        file = makings[0].plan.file
        extra = (["--data", str(data)] if data else []) + (
            ["--model", str(file.path)] if not file.own else []
        )
        yield from side_by_side([each.folder.path for each in makings], extra, voice.of_process)
        return
    for making in makings:
        name, below = making.plan.file.name, making.folder.path.name
        with voice.of_run(
            " ".join(filter(None, [name, below, said])), making.plan.recipe.fit.epochs
        ) as told_of:
            making.finish(told_of)
        yield making.folder.path


def answerable(parts: Split, plan: Plan) -> Split:
    """The split, unless it asks for users whom the model cannot answer."""
    strangers = sum(int((~cases.known).sum()) for cases in parts.held.values())
    if strangers and not plan.file.model.claims.folds_in:
        name = plan.file.name
        raise ProtocolError(f"{name} knows trained users alone; {parts.protocol} asks for {strangers} others")
    if plan.how.memory and not len(parts.valid):
        raise ProtocolError(f"a memory is weighed on validation cases; {parts.protocol} has none")
    return parts


def wants_memory(path: Path) -> None:
    """Every run at or below a folder has a memory still to come, unless it has one."""
    cards = [(folder, folder.card()) for folder in folders(path)]
    if whole := [folder.path for folder, card in cards if card["how"]["protocol"] == "all"]:
        raise ProtocolError(f"a memory is weighed on validation cases; {whole[0]} has none")
    for folder, card in cards:
        folder.write_card(card | {"how": card["how"] | {"memory": True}})
