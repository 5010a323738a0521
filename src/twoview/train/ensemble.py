"""Runs of one setting asked as one: temperatures and weight from validation, measured once, kept beside them.

RUN/seed-0 seed-1 ...   the runs
RUN/ensemble            card.json ranks_*.npy cases_*.npy: made when first asked for, and when a run changed
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.split import Cases, Split, split
from ..error import ProtocolError
from ..evaluate.metrics import metrics
from ..evaluate.mixture import Ensemble, Remembering, chosen, fitted_temperature
from ..evaluate.ranks import SEEN, Questions, cases_table, ranks
from ..types import Recommender
from .entry import groups, kept_ensemble, members, place_of
from .folder import Folder, folders
from .memory import worth_of
from .plan import device_of
from .run import Run, evaluation
from .training import own_log


def evaluations(
    path: Path, split: str, *, ensembles: bool, data: Path | None, model: str | None
) -> list[dict[str, Any]]:
    """What every run at or below a path is worth; or every setting, its runs' mean beside their ensemble."""
    if ensembles:
        return averaged(path, split, data=data, model=model)
    return [evaluation(folder, split) for folder in folders(path)]


def averaged(
    path: Path, split: str = "test", *, data: Path | None = None, model: str | None = None
) -> list[dict[str, Any]]:
    """What each setting below a path is worth: the mean of its runs, and beside it their ensemble."""
    found = []
    for group in groups(path):
        singles = [evaluation(run, split) for run in group]
        kept = _measured(group, data, model)
        card, cases = kept.card(), kept.array(f"cases_{split}.npy")
        ensemble = {"name": card["model"], "metrics": metrics(kept.array(f"ranks_{split}.npy"), cases)}
        if "memory" in card:
            worth = metrics(kept.array(f"ranks_memory_{split}.npy"), cases)
            ensemble["memory"] = {"weight": card["memory"]["weight"], "metrics": worth}
        told = {"run": str(place_of(group).parent), "model": singles[0]["model"]}
        protocol = {**singles[0]["protocol"], "seeds": card["seeds"]}
        found.append(told | {"protocol": protocol} | _mean(singles) | {"ensemble": ensemble})
    return found


def _mean(singles: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The metrics of several runs as those of one; with a memory where all have one."""
    found: dict[str, Any] = {"metrics": _mean_of([each["metrics"] for each in singles])}
    memories = [each["memory"] for each in singles if "memory" in each]
    if len(memories) < len(singles):
        return found
    weight = sum(each["weight"] for each in memories) / len(memories)
    return found | {"memory": {"weight": weight, "metrics": _mean_of([each["metrics"] for each in memories])}}


def _mean_of(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: sum(each[name] for each in several) / len(several) for name in several[0]}


def averaged_runs(path: Path, *, data: Path | None = None, model: str | None = None) -> list[Run]:
    """Each setting below a path as a run whose recommender is the ensemble of all."""
    opened = []
    for group in groups(path):
        card, runs = _measured(group, data, model).card(), _opened(group, model)
        *_, runs[0].recommender = _mixtures(runs, card).values()
        runs[0].title = str(place_of(group))
        opened.append(runs[0])
    return opened


def _opened(group: Sequence[Folder], model: str | None) -> list[Run]:
    return [Run.open(each.path, model=model) for each in group]


def _measured(group: Sequence[Folder], data: Path | None, model: str | None) -> Folder:
    """The folder of a group's ensemble, up to date."""
    kept = kept_ensemble(group)
    if kept is not None:
        return kept
    folder, card, runs = Folder(place_of(group)), group[0].card(), _opened(group, model)
    if not card["protocol"]:
        raise ProtocolError(f"an ensemble wants cases to be measured on; {group[0].path} was trained on all")
    parts = _parts(runs[0], data)
    asked = {name: _questions(runs, cases) for name, cases in parts.held.items()}
    told = _chosen(runs, asked["valid"], parts)
    folder.path.mkdir(exist_ok=True)
    for name, questions in asked.items():
        folder.write_array(f"cases_{name}.npy", cases_table(questions.cases, parts.train))
        for kind, mixture in _mixtures(runs, told).items():
            folder.write_array(f"{kind}_{name}.npy", ranks(mixture, questions))
    named = {"model": f"ensemble of {len(runs)} {card['model']}", "seeds": [run.plan.seed for run in runs]}
    known = {name: card[name] for name in ("finished", "how", "data", "protocol")}
    folder.write_card(named | {"members": members(group)} | told | known)
    return folder


def _parts(run: Run, data: Path | None) -> Split:
    """What a run was trained and measured on."""
    return split(own_log(run.folder, data), run.plan.how.protocol)


def _questions(runs: Sequence[Run], cases: Cases) -> Questions:
    """Cases as the runs were asked them, the runs brought to where they are."""
    first, device = runs[0], device_of(runs[0].plan.how.device)
    for run in runs:
        run.to(device)
    max_len, seen = first.plan.recipe.rows.max_len, SEEN[first.plan.how.seen]
    return Questions(cases, max_len=max_len, room=first.model.room, seen=seen, device=device)


def _chosen(runs: Sequence[Run], questions: Questions, parts: Split) -> dict[str, Any]:
    """What validation chooses: a temperature for each run; where all keep a memory, whose and its weight."""
    temperatures = [fitted_temperature(run.model, questions) for run in runs]
    told: dict[str, Any] = {"temperatures": temperatures}
    memories = [run.memory for run in runs if run.memory is not None]
    if len(memories) < len(runs):
        return told
    (ensemble,) = _mixtures(runs, told).values()
    which, weight = chosen(ensemble, memories, questions, worth_of(parts))
    return {**told, "memory": {"weight": weight, "of": runs[which].path.name}}


def _mixtures(runs: Sequence[Run], told: Mapping[str, Any]) -> dict[str, Recommender]:
    """The ensemble, and the ensemble with a memory where it has one, by what their ranks are called."""
    ensemble = Ensemble([run.model for run in runs], told["temperatures"])
    if "memory" not in told:
        return {"ranks": ensemble}
    (memory,) = (run.memory for run in runs if run.path.name == told["memory"]["of"] and run.memory)
    return {"ranks": ensemble, "ranks_memory": Remembering(ensemble, memory, told["memory"]["weight"])}
