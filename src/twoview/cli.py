"""The command line: one function per verb, no logic; what a verb does lies in the room of its name."""

import errno
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from .error import Interrupted, TwoviewError

app = typer.Typer(
    help="Sequential recommendation around ContrastVAE: prepare a log, train, evaluate, compare, recommend.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
Data = Annotated[Path | None, typer.Option(help="The prepared log, if it is not where the run's card says.")]
RunPath = Annotated[Path, typer.Argument(help="A run, or a folder of several.")]
RunPaths = Annotated[list[Path], typer.Argument(help="Runs, or folders of several.")]
Part = Annotated[str, typer.Option(help="test or valid.")]
Against = Annotated[str | None, typer.Option(help="The setting to compare all others with.")]
As = Annotated[str | None, typer.Option("--as", help="Count as others do: recbole, released, sampled-100.")]
ModelPath = Annotated[str | None, typer.Option("--model", help="The file of a model of your own.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Page = Annotated[Path, typer.Option("--out", help="The page to write.")]
Ensembles = Annotated[bool, typer.Option("--ensemble", help="Also the runs of each setting, asked as one.")]


def show(value: Any, *, as_json: bool, lines: Callable[[], Iterable[Any]]) -> None:
    """A value as JSON, or as lines and tables for a person."""
    if as_json:
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120)
    for line in lines():
        console.print(line, highlight=False, markup=False, soft_wrap=isinstance(line, str))


def waiting(what: str) -> Any:
    """A sign of life on a terminal, nothing elsewhere."""
    from rich.console import Console

    return Console(stderr=True).status(what)


def listed(rows: list[dict[str, Any]], *columns: str) -> Any:
    """Rows as a table."""
    from rich.table import Table

    drawn = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        drawn.add_row(*(str(row[column]) for column in columns))
    return drawn


def alone(values: list[Any]) -> Any:
    """The one value, or the list of several."""
    return values[0] if len(values) == 1 else values


@app.command()
def datasets(json_: Json = False) -> None:
    """What data sets are known by name."""
    from .data.catalogue import describe

    show(describe(), as_json=json_, lines=lambda: [listed(describe(), "name", "what", "licence")])


@app.command()
def models(json_: Json = False) -> None:
    """What models there are, and their recipes."""
    from .models import summaries

    show(summaries(), as_json=json_, lines=lambda: [listed(summaries(), "name", "idea", "recipes")])


@app.command()
def objectives(json_: Json = False) -> None:
    """What contrastive objectives there are."""
    from .objectives import describe

    show(describe(), as_json=json_, lines=lambda: [listed(describe(), "name", "result", "formula")])


@app.command()
def prepare(
    source: Annotated[str, typer.Argument(help="A file, a folder, a glob or a name of `twoview datasets`.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    format_: Annotated[
        str | None, typer.Option("--format", help="Of the source, if it is not to be sniffed.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="The column of users.")] = None,
    item: Annotated[str | None, typer.Option(help="The column of items.")] = None,
    time: Annotated[str | None, typer.Option(help="The column of times.")] = None,
    rating: Annotated[str | None, typer.Option(help="The column of ratings.")] = None,
    attributes: Annotated[Path | None, typer.Option(help="A *_item2attributes.json file.")] = None,
    titles: Annotated[Path | None, typer.Option(help="A file of two columns, item and title.")] = None,
    min_count: Annotated[int, typer.Option(min=0, help="Keep the k-core: k events per user and item.")] = 0,
    min_rating: Annotated[float | None, typer.Option(help="Leave out events rated lower.")] = None,
    force: Force = False,
    json_: Json = False,
) -> None:
    """Read a source, check it, write it as a log."""
    from .data.card import card, lines
    from .data.prepare import Options
    from .data.prepare import prepare as prepared

    options = Options(
        format=format_, user=user, item=item, time=time, rating=rating, attributes=attributes, titles=titles,
        min_count=min_count, min_rating=min_rating, force=force,
    )  # fmt: skip
    with waiting(f"reading {source}"):
        log, verdict = prepared(source, out, options=options)
    facts = card(log)
    show(
        {"out": str(out), "verdict": verdict, **facts}, as_json=json_, lines=lambda: [verdict, *lines(facts)]
    )


@app.command()
def train(
    model: Annotated[str, typer.Argument(help="A name from `twoview models`, or a python file.")] = "",
    data: Annotated[Path | None, typer.Argument(help="A prepared log.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to write.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Recipes, left to right: paper+ma+beauty.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="key=value; a comma sweeps.")] = None,
    protocol: Annotated[str | None, typer.Option(help="leave-one-out, temporal[-first] or all.")] = None,
    seen: Annotated[str | None, typer.Option(help="removed or kept: items that a user met before.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the first run.")] = None,
    seeds: Annotated[int | None, typer.Option(help="How many runs, into seed-0, seed-1, ...")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    epochs: Annotated[int | None, typer.Option(help="At most.")] = None,
    state_every: Annotated[float | None, typer.Option(help="Seconds between states; 0: each epoch.")] = None,
    memory: Annotated[bool, typer.Option("--memory", help="Put a co-occurrence memory beside it.")] = False,
    resume: Annotated[Path | None, typer.Option(help="Go on with a run that was interrupted.")] = None,
    moved: Annotated[Path | None, typer.Option("--data", help="Its data, if it has moved.")] = None,
    model_path: ModelPath = None,
    force: Force = False,
) -> None:
    """Train a model and measure it once."""
    from .train.request import Request, answered
    from .train.told import SPEAKING

    told = {
        "recipe": recipe, "set": tuple(set_ or ()), "protocol": protocol, "seen": seen, "seed": seed,
        "seeds": seeds, "device": device, "epochs": epochs, "state_every": state_every, "memory": memory,
        "force": force,
    }  # fmt: skip
    request = Request(model=model, data=data or moved, out=out, resume=resume, own=model_path, told=told)
    show(None, as_json=False, lines=lambda: answered(request, SPEAKING))


@app.command()
def evaluate(
    run: RunPath, split: Part = "test", as_: As = None, ensemble: Ensembles = False, data: Data = None,
    model_path: ModelPath = None, json_: Json = False,
) -> None:  # fmt: skip
    """What a run's ranks are worth, beside the protocol they were counted under."""
    from .analyse.rescored import Request, drawn, evaluations

    request = Request(split=split, counted_as=as_, ensembles=ensemble, data=data, own=model_path)
    found = evaluations(run, request)
    show(alone(found), as_json=json_, lines=lambda: drawn(found))


@app.command()
def compare(
    runs: RunPaths, split: Part = "test", against: Against = None, as_: As = None,
    ensemble: Ensembles = False, data: Data = None, model_path: ModelPath = None, json_: Json = False,
) -> None:  # fmt: skip
    """Runs side by side, every difference tested: over users, over seeds, over both."""
    from .analyse.rescored import Request, compared
    from .evaluate.wording import lines

    how = Request(split=split, counted_as=as_, against=against, ensembles=ensemble, data=data, own=model_path)
    found = compared(runs, how)
    show(found, as_json=json_, lines=lambda: lines(found))


@app.command()
def recommend(
    run: RunPath,
    user: Annotated[str | None, typer.Option(help="A user of the data.")] = None,
    items: Annotated[str | None, typer.Option(help="Items a stranger chose, oldest first: A,B,C.")] = None,
    users: Annotated[str | None, typer.Option(help="all, or a file of users; into --out.")] = None,
    out: Annotated[Path | None, typer.Option(help="A .parquet, .csv, .tsv or .jsonl file to write.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 10,
    keep_seen: Annotated[bool, typer.Option("--keep-seen", help="Also what was chosen before.")] = False,
    only: Annotated[Path | None, typer.Option(help="A file of items; nothing else is recommended.")] = None,
    except_: Annotated[Path | None, typer.Option("--except", help="A file of items never shown.")] = None,
    data: Data = None,
    ensemble: Ensembles = False,
    model_path: ModelPath = None,
    force: Force = False,
    json_: Json = False,
) -> None:
    """What to show next: to a user, after any items, or to everybody."""
    from .train.ask import Question, answers

    question = Question(
        user=user, items=items, users=users, out=out, k=k, keep_seen=keep_seen, only=only, barred=except_,
        data=data, ensemble=ensemble, force=force,
    )  # fmt: skip
    found = answers(run, question, model_path)
    show(alone([each.json for each in found]), as_json=json_, lines=lambda: [each.drawn() for each in found])


@app.command()
def diagnose(run: RunPath, data: Data = None, model_path: ModelPath = None, json_: Json = False) -> None:
    """Whether a run's latents and contrast are healthy: a verdict, and the numbers behind it."""
    from .analyse.diagnosis import diagnoses
    from .analyse.table import drawn

    found = diagnoses(run, data=data, model=model_path)
    show(alone(found), as_json=json_, lines=lambda: [line for each in found for line in drawn(each)])


@app.command()
def report(runs: RunPaths, out: Page, force: Force = False) -> None:
    """Runs as one page that opens from disk: intervals, curves, slices, health, how to make it again."""
    from .report.page import report as written

    with waiting(f"drawing {out}"):
        show(None, as_json=False, lines=lambda: [written(runs, out, force=force)])


def main() -> None:
    """Runs a verb; a user's mistake is one line and exit 2, an interruption exit 130."""
    try:
        app()
    except TwoviewError as error:
        _leave(" ".join(str(error).split()), 130 if isinstance(error, Interrupted) else 2)
    except OSError as error:
        known = {
            errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.ENOTDIR, errno.EISDIR, errno.EPIPE,
        }  # fmt: skip
        if error.errno not in known:
            raise
        _leave(f"{error.filename or 'the output'}: {error.strerror}", 2)


def _leave(line: str, code: int) -> None:
    sys.stderr.write(f"twoview: {line}\n")
    raise SystemExit(code)
