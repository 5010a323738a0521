"""The data card: what a log holds and what in it could mislead an evaluation, counted, never repaired."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .column import EPOCH

if TYPE_CHECKING:
    from .log import Log

QUANTILES = {"min": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "q99": 0.99, "max": 1.0}
BINS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # a histogram's lower edges; the last has no upper one
YEARS = (int(EPOCH.timestamp()), int(datetime(2101, 1, 1, tzinfo=UTC).timestamp()))  # 1970 to 2100


def card(log: "Log") -> dict[str, Any]:
    """All that a reader should know before training on a log, ready for json."""
    counted = {
        "users": log.n_users,
        "items": log.n_items,
        "events": log.n_events,
        "columns": columns(log),
        **lengths(log),
        **repeats(log),
        **clock(log),
        "users_under_three": int(np.count_nonzero(log.lengths < 3)),
        "cold_test_share": cold_share(log),
        "source_md5": log.source_md5,
        "arrays_md5": log.arrays_md5,
        "notes": list(log.notes),
    }
    return {**counted, "warnings": warnings(counted)}


def columns(log: "Log") -> list[str]:
    """The columns a log has beyond users and items."""
    kept = {"times": log.times, "titles": log.titles, "attributes": log.attributes}
    return [name for name, column in kept.items() if column is not None]


def lengths(log: "Log") -> dict[str, Any]:
    """How long histories are: quantiles that some user has, and how many users fall between two edges."""
    if not log.n_users:
        return {"length": {}, "length_histogram": []}
    sizes = log.lengths
    marks = {
        name: int(np.quantile(sizes, q, method="inverted_cdf" if q else "lower"))
        for name, q in QUANTILES.items()
    }
    counts, _ = np.histogram(sizes, bins=[0, *BINS, np.inf])
    edges = zip((0, *BINS), (*(edge - 1 for edge in BINS), None), counts.tolist(), strict=True)
    histogram = [{"from": low, "to": high, "users": users} for low, high, users in edges if users]
    return {"length": {**marks, "mean": round(float(sizes.mean()), 3)}, "length_histogram": histogram}


def repeats(log: "Log") -> dict[str, Any]:
    """How many events name an item their user already had, and how many are the same event once more."""
    keys = log.owners * log.n_items + log.items
    order = np.argsort(keys, kind="stable")  # within a user and item still by time
    again = keys[order[1:]] == keys[order[:-1]]
    doubled = None
    if log.times is not None:
        doubled = int(np.count_nonzero(again & (log.times[order[1:]] == log.times[order[:-1]])))
    repeated = int(np.count_nonzero(again))
    return {
        "repeated_items": repeated,
        "repeated_share": share(repeated, log.n_events),
        "duplicate_events": doubled,  # None without times: then a duplicate cannot be told from a repeat
    }


def clock(log: "Log") -> dict[str, Any]:
    """When it happened, which order is only the file's, and what lies outside 1970 to 2100."""
    if log.times is None or not log.n_events:
        return {"first": None, "last": None, "tied_share": None, "outside_years": None}
    same = (log.times[1:] == log.times[:-1]) & (log.owners[1:] == log.owners[:-1])
    tied = np.zeros(log.n_events, dtype=bool)
    tied[1:] |= same
    tied[:-1] |= same
    outside = np.count_nonzero((log.times < YEARS[0]) | (log.times >= YEARS[1]))
    return {
        "first": moment(int(log.times.min())),
        "last": moment(int(log.times.max())),
        "tied_share": share(int(np.count_nonzero(tied)), log.n_events),
        "outside_years": int(outside),
    }


def moment(seconds: int) -> str:
    """A time as an ISO date, or as seconds where no calendar has it."""
    try:
        return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:
        return f"{seconds} s"


def cold_share(log: "Log") -> float | None:
    """The share of leave-one-out test targets that no training event names; None when nobody is tested."""
    tested = log.lengths >= 3
    if not tested.any():
        return None
    ends = log.offsets[1:][tested]
    trains = np.ones(log.n_events, dtype=bool)
    trains[ends - 1] = trains[ends - 2] = False
    known: NDArray[np.bool_] = np.zeros(log.n_items, dtype=bool)
    known[log.items[trains]] = True
    targets = log.items[ends - 1]
    return share(int(np.count_nonzero(~known[targets])), len(targets))


def share(part: int, whole: int) -> float:
    """A part of a whole, to six digits; nothing of nothing is 0."""
    return round(part / whole, 6) if whole else 0.0


def warnings(facts: Mapping[str, Any]) -> list[str]:
    """What on a card could mislead, one line each."""
    users, under, doubled = facts["users"], facts["users_under_three"], facts["duplicate_events"]
    cold, tied, outside = facts["cold_test_share"], facts["tied_share"], facts["outside_years"]
    said = {
        "nobody has three events: leave-one-out can test nobody": users > 0 and under == users,
        f"{under:,} of {users:,} users have fewer than three events: they train and are not tested": 0
        < under
        < users,
        f"{doubled or 0:,} events are exact duplicates (same user, item and time)": doubled,
        f"{facts['repeated_share']:.1%} of the events repeat an item of their user: consider --seen kept": (
            facts["repeated_share"] >= 0.05
        ),
        f"{tied or 0:.1%} of the events have the time of another of their user: their order is the file's": (
            tied and tied >= 0.05
        ),
        f"{cold or 0:.1%} of the leave-one-out test targets are items never trained on": cold
        and cold >= 0.01,
        f"{outside or 0:,} events lie outside the years 1970 to 2100: is the unit of time right?": outside,
        "all times lie in the first days of 1970: they look like an order, not like dates": (
            facts["last"] is not None and facts["first"][:7] == facts["last"][:7] == "1970-01"
        ),
    }
    return [line for line, holds in said.items() if holds]


def lines(facts: Mapping[str, Any]) -> list[str]:
    """A card as plain lines for a terminal, warnings last."""
    size = facts["length"]
    told = [f"{facts['users']:,} users, {facts['items']:,} items, {facts['events']:,} events"]
    if size:
        told.append(
            f"history length {size['min']} to {size['max']}, median {size['median']}, mean {size['mean']:.1f}"
        )
        told.extend(bars(facts["length_histogram"]))
    told.append(
        f"times: {facts['first']} to {facts['last']}" if facts["first"] else "times: none, only an order"
    )
    if facts["tied_share"] is not None:
        told.append(f"tied times: {facts['tied_share']:.1%} of the events")
    told.append(f"repeated items: {facts['repeated_share']:.1%} of the events")
    if facts["cold_test_share"] is not None:
        told.append(f"cold test targets: {facts['cold_test_share']:.1%}")
    told.append(f"md5: source {facts['source_md5'] or 'none'}, arrays {facts['arrays_md5']}")
    told.extend(f"note: {line}" for line in facts["notes"])
    told.extend(f"warning: {line}" for line in facts["warnings"])
    return told


def bars(histogram: list[dict[str, Any]]) -> list[str]:
    """A histogram of lengths drawn in text."""
    most = max(row["users"] for row in histogram)
    spans = [f"{row['from']}+" if row["to"] is None else f"{row['from']}-{row['to']}" for row in histogram]
    drawn = ["#" * max(1, round(30 * row["users"] / most)) for row in histogram]
    return [
        f"  {span:>9} {bar} {row['users']:,}" for span, bar, row in zip(spans, drawn, histogram, strict=True)
    ]
