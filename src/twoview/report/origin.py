"""Where the numbers come from: recipes, commands that make them again, machines, and the data."""

import shlex
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from .block import Block, Code, Facts, Figures, Grid, Section, Words
from .chart import Said
from .figure import bars
from .material import Material, Run

UNSAID: Mapping[str, Any] = {
    "recipe": "best",
    "protocol": "leave-one-out",
    "seen": "removed",
    "seed": 0,
    "device": "auto",
    "state_every": 10.0,
    "force": False,
}  # what a training does when it is not told


def recipes(material: Material) -> Section:
    """Every setting's recipe, whole."""
    note = "As they lie in the run folders: every setting with its value, defaults included."
    told = [Code(group.name, group.runs[0].recipe) for group in material.trained]
    return Section("recipes", "Recipes", [Words(note, aside=True), *told])


def reproduction(material: Material) -> Section:
    """The commands that make the runs, the table and the page again, and what they ran on."""
    trainings = dict.fromkeys(training(run) for run in material.runs)
    paths = shlex.join(map(str, material.paths))
    commands = [*trainings, f"twoview compare {paths}", f"twoview report {paths} --out page.html"]
    columns = ("run", "seed", "epochs", "selected", "parameters", "seconds", "device")
    blocks: list[Block] = [
        Code("Commands", "\n".join(commands)),
        Grid("Runs", columns, [made(run) for run in material.runs]),
        Facts(surroundings(material), title="Ran with"),
    ]
    own = sorted({run.card["model"] for run in material.runs if not run.card["own_model"]})
    if own:
        files = ", ".join(f"{name}.py" for name in own)
        blocks.insert(
            1, Words(f"{files}: a file beside the package, to be at hand; runs keep its md5.", aside=True)
        )
    return Section("reproduce", "How to make it again", blocks)


def training(run: Run) -> str:
    """The command that trained a run, with its other seeds and settings."""
    card, how = run.card, run.card["how"]
    below = [card["setting"]] if card["setting"] else []
    below += [f"seed-{card['seed']}"] if card["setting"] or how["seeds"] else []
    out = run.folder.path
    for _ in below:
        out = out.parent
    name = card["model"] if card["own_model"] else f"./{card['model']}.py"
    words = ["twoview", "train", name, card["data"]["folder"] or "DATA", "--out", str(out)]
    for key, value in how.items():
        option = f"--{key.replace('_', '-')}"
        if value in (None, [], False) or value == UNSAID.get(key):
            continue
        if isinstance(value, list):
            words += [word for each in value for word in (option, each)]
        else:
            words += [option] if value is True else [option, str(value)]
    return shlex.join(words)


def made(run: Run) -> list[str]:
    """A run as a row: how long, how large, where."""
    card = run.card
    device = card["machine"]["device"]
    where = (
        device if device != "cpu" else f"{card['machine']['processor']}, threads {card['machine']['threads']}"
    )
    size = [str(card["epochs"]), str(card["best_epoch"]), f"{card['parameters']:,}", f"{card['seconds']:.1f}"]
    return [str(run.folder.path), str(card["seed"]), *size, where]


def surroundings(material: Material) -> list[tuple[str, str]]:
    """Versions, each with all that came, and the md5 of every model's file."""
    names = dict.fromkeys(name for run in material.runs for name in run.card["versions"])
    rows = [
        (name, ", ".join(dict.fromkeys(run.card["versions"].get(name, "none") for run in material.runs)))
        for name in names
    ]
    files = dict.fromkeys((run.card["model"], run.card["model_md5"]) for run in material.runs)
    return rows + [(f"{model}.py", f"md5 {md5}") for model, md5 in files]


def data(material: Material) -> Section:
    """The data card, where the data still is where the runs found it."""
    facts = material.data()
    if facts is None:
        folder = material.groups[0].runs[0].card["data"]["folder"]
        where = f"are no longer in {folder}" if folder else "were a log in memory"
        return Section(
            "data", "Data", [Words(f"The events {where}; their md5 is {material.compared['data_md5']}.")]
        )
    blocks: list[Block] = [Facts(counted(facts))]
    if facts["length_histogram"]:
        blocks.append(Figures([lengths(facts["length_histogram"])]))
    blocks += [
        Words(f"{kind.capitalize()}: {line}") for kind in ("warning", "note") for line in facts[f"{kind}s"]
    ]
    return Section("data", "Data", blocks)


def counted(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A data card as names and numbers."""
    size = facts["length"]
    rows = {
        "users": f"{facts['users']:,}, {facts['users_under_three']:,} of them with fewer than three events",
        "items": f"{facts['items']:,}",
        "events": f"{facts['events']:,}",
        "history": f"{size['min']} to {size['max']} events, median {size['median']}, mean {size['mean']:.1f}"
        if size
        else "",
        "times": f"{facts['first']} to {facts['last']}" if facts["first"] else "none, only an order",
        "tied times": "" if facts["tied_share"] is None else f"{facts['tied_share']:.1%} of the events",
        "repeated items": f"{facts['repeated_share']:.1%} of the events",
        "source": f"md5 {facts['source_md5']}" if facts["source_md5"] else "",
        "arrays": f"md5 {facts['arrays_md5']}",
    }
    return [(name, told) for name, told in rows.items() if told]


def lengths(histogram: list[dict[str, Any]]) -> Markup:
    """How many users have histories of which length."""
    labels = [f"{row['from']}+" if row["to"] is None else span(row["from"], row["to"]) for row in histogram]
    users = [row["users"] for row in histogram]
    told = "; ".join(f"{label}: {count:,}" for label, count in zip(labels, users, strict=True))
    return bars(Said("lengths", "Users by length of their history", told), labels, users)


def span(low: int, high: int) -> str:
    """Two bounds as a label, one where they are the same."""
    return str(low) if low == high else f"{low}–{high}"
