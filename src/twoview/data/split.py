"""What trains and what is held out, as places in one log: nothing is copied but the training events.

leave-one-out    u   . . . . . v t        t tests, v validates, the rest trains; v is shown when t is asked
                 w   . .                  fewer than three events: all train, nothing is asked, counted

temporal         u   . . . | v v | t t    cuts at the .8 and .9 quantiles of times; a case is a later event,
                 w         |     | t t    shown all earlier ones of its user; none to show: left out, counted
temporal-first   u   . . . | v   | t      the first case of each user alone

all              u   . . . . . . .        everything trains, for serving
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..error import ProtocolError
from .column import Ints
from .log import Log


@dataclass(frozen=True, eq=False)
class Cases:
    """Held-out events: each is asked for, after all earlier events of its user have been shown."""

    log: Log  # the whole log that the places point into
    users: Ints  # [C]
    places: Ints  # [C] the flat place of each target
    known: NDArray[
        np.bool_
    ]  # [C] whether the user has training events; the others are strangers to the model

    def __len__(self) -> int:
        return len(self.places)

    def some(self, which: Ints | slice) -> "Cases":
        """A part of the cases, in the order asked for."""
        return replace(self, users=self.users[which], places=self.places[which], known=self.known[which])

    @property
    def targets(self) -> Ints:
        return self.log.items[self.places].astype(np.int64)

    @property
    def begin(self) -> Ints:
        """The flat place of the oldest event shown; the target's place ends what is shown."""
        return self.log.offsets[self.users]

    @property
    def shown(self) -> Ints:
        """How many events are shown."""
        return self.places - self.begin


@dataclass(frozen=True, eq=False)
class Split:
    """A training log, the cases that choose a model and the cases that measure it."""

    protocol: str
    train: Log  # the same users and items, the training events alone
    valid: Cases
    test: Cases
    left_out: dict[str, int] = field(default_factory=dict)  # what is not asked, by reason

    @property
    def held(self) -> dict[str, Cases]:
        """The cases there are, by name."""
        named = {"valid": self.valid, "test": self.test}
        return {name: cases for name, cases in named.items() if len(cases)}


def kept(log: Log, trains: NDArray[np.bool_]) -> Log:
    """The same users and items with some of the events: [E] -> Log"""
    counts = np.bincount(log.owners[trains], minlength=log.n_users)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    times = None if log.times is None else log.times[trains]
    return replace(log, offsets=offsets, items=log.items[trains], times=times)


def _cases(log: Log, train: Log, places: Ints) -> Cases:
    users = np.searchsorted(log.offsets, places, side="right") - 1
    return Cases(log=log, users=users, places=places, known=train.lengths[users] > 0)


def leave_one_out(log: Log) -> Split:
    """Each user's last event tests, the one before validates."""
    enough = log.lengths >= 3
    test = log.offsets[1:][enough] - 1
    trains = np.ones(log.n_events, dtype=bool)
    trains[test] = trains[test - 1] = False
    train = kept(log, trains)
    left_out = {"users with fewer than three events": int((~enough).sum())}
    return Split("leave-one-out", train, _cases(log, train, test - 1), _cases(log, train, test), left_out)


def temporal(log: Log, *, first: bool = False) -> Split:
    """What happened before the .8 quantile of all times trains, the next tenth validates, the rest tests."""
    if log.times is None:
        raise ProtocolError("the temporal protocol wants a log with times; this one has only an order")
    cuts = np.quantile(log.times, [0.8, 0.9], method="higher") if log.n_events else np.zeros(2)
    train = kept(log, log.times < cuts[0])
    oldest = np.zeros(log.n_events, dtype=bool)
    oldest[log.offsets[:-1][log.lengths > 0]] = True
    periods = [(log.times >= cuts[0]) & (log.times < cuts[1]), log.times >= cuts[1]]
    left_out = {"later events with nothing to show": int((oldest & (log.times >= cuts[0])).sum())}
    asked = [np.flatnonzero(period & ~oldest) for period in periods]
    if first:
        asked = [places[np.unique(log.owners[places], return_index=True)[1]] for places in asked]
    name = "temporal-first" if first else "temporal"
    return Split(name, train, _cases(log, train, asked[0]), _cases(log, train, asked[1]), left_out)


def everything(log: Log) -> Split:
    """All events train and nothing is asked."""
    none = np.zeros(0, dtype=np.int64)
    return Split("all", log, _cases(log, log, none), _cases(log, log, none))


PROTOCOLS: dict[str, Callable[[Log], Split]] = {
    "leave-one-out": leave_one_out,
    "temporal": temporal,
    "temporal-first": lambda log: temporal(log, first=True),
    "all": everything,
}


def split(log: Log, protocol: str) -> Split:
    """A log under a protocol by name; refused when there is nothing to train on or nothing to ask."""
    if protocol not in PROTOCOLS:
        raise ProtocolError(f"no protocol {protocol!r}; there are {', '.join(PROTOCOLS)}")
    parts = PROTOCOLS[protocol](log)
    if parts.train.lengths.max(initial=0) < 1:
        raise ProtocolError(f"{protocol} leaves nothing to train on: the log has {log.n_events} events")
    if protocol != "all" and not (len(parts.valid) and len(parts.test)):
        raise ProtocolError(
            f"{protocol} wants users with at least three events; of {log.n_users} users nobody has them"
            if protocol == "leave-one-out"
            else f"{protocol} wants cases in both; {len(parts.valid)} validate and {len(parts.test)} test"
        )
    return parts
