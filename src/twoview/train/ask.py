"""What `twoview recommend` asks for: a user, some items, or everybody into a file."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from ..error import DataError, RunError
from .ensemble import averaged_runs
from .folder import folders
from .recommend import Counter, Recommended, asked_log
from .run import Run


@dataclass(frozen=True, kw_only=True)
class Question:
    """For whom, how many, of what."""

    user: str | None = None
    items: str | None = None  # "A,B,C"
    users: str | None = None  # "all", or a file of users
    out: Path | None = None
    k: int = 10
    keep_seen: bool = False
    only: Path | None = None
    barred: Path | None = None
    data: Path | None = None
    ensemble: bool = False  # whether the runs of each setting answer as one
    force: bool = False

    def __post_init__(self) -> None:
        asked = [name for name in ("user", "items", "users") if getattr(self, name) is not None]
        if len(asked) != 1:
            raise RunError(
                f"recommend wants one of --user, --items, --users; {' and '.join(asked) or 'none'} came"
            )
        if (self.users is None) != (self.out is None):
            raise RunError("recommend wants --users and --out together: everybody's list goes into a file")


@dataclass(frozen=True)
class Answer:
    """What one run recommends."""

    title: str
    json: dict[str, Any]
    items: Sequence[Recommended] = field(default=())

    def drawn(self) -> Group | str:
        """For a terminal."""
        if not self.items:
            return self.title
        table = Table("", "item", "title", "score", box=None)
        for place, each in enumerate(self.items, start=1):
            table.add_row(str(place), each.id, each.title, f"{each.score:.3f}")
        return Group(self.title, table)


def answers(path: Path, question: Question, model: str | None) -> list[Answer]:
    """Every run at or below the path is asked; or every ensemble of them."""
    if question.ensemble:
        asked = averaged_runs(path, data=question.data, model=model)
    else:
        asked = [Run.open(folder.path, model=model) for folder in folders(path)]
    told = [_answer(run, question) for run in asked]
    if len(told) == 1:
        return told
    return [
        Answer(each.title, {"run": run.title, **each.json}, each.items)
        for run, each in zip(asked, told, strict=True)
    ]


def _answer(run: Run, question: Question) -> Answer:
    counter = Counter(run, keep_seen=question.keep_seen)
    if question.only:
        counter.only(ids_in(question.only))
    if question.barred:
        counter.excluding(ids_in(question.barred))
    if question.items is not None:
        chosen = [item.strip() for item in question.items.split(",") if item.strip()]
        return _list(
            f"{run.title}, after {', '.join(counter.named(chosen))}", counter.for_items(chosen, question.k)
        )
    log = asked_log(run, question.data)
    if question.user is not None:
        ((_, items),) = counter.for_users(log, [question.user], question.k)
        chose = ", ".join(counter.lately(log, question.user))
        return _list(f"{run.title}, for {question.user}, who lately chose {chose}", items)
    assert question.out is not None
    everybody = [user for user, n in zip(log.user_ids, log.lengths.tolist(), strict=True) if n]
    users = everybody if question.users == "all" else ids_in(Path(str(question.users)))
    n_rows = _written(counter.for_users(log, users, question.k), question.out, force=question.force)
    told = {"out": str(question.out), "users": len(users), "rows": n_rows}
    return Answer(f"{question.out}: {n_rows:,} recommendations for {len(users):,} users", told)


def _list(title: str, items: Sequence[Recommended]) -> Answer:
    return Answer(title, {"items": [asdict(each) for each in items]}, items)


def _written(found: Iterator[tuple[str, list[Recommended]]], out: Path, *, force: bool) -> int:
    """Everybody's list in a file, a row for each place; how many rows."""
    from ..data.sources.export import write_table

    columns: dict[str, list[Any]] = {name: [] for name in ("user", "place", "item", "title", "score")}
    for user, items in found:
        for place, each in enumerate(items, start=1):
            for column, value in zip(
                columns.values(), (user, place, each.id, each.title, each.score), strict=True
            ):
                column.append(value)
    write_table(columns, out, force=force)
    return len(columns["user"])


def ids_in(path: Path) -> list[str]:
    """A file of ids, one a line."""
    try:
        ids = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"a file with an id per line was wanted at {path}; {error}") from error
    if not any(ids):
        raise DataError(f"a file with an id per line was wanted; {path} is empty")
    return [each for each in ids if each]
