"""What becomes a history in training, as stretches of the training log's flat arrays.

events of a user   1 2 3 4 5 6 7       max_len 3; a target follows each place, none follows the 7
last               . . . 4 5 6 .       -> 5 6 7
windows            1 2 3 | 4 5 6       -> 2 3 4 | 5 6 7
prefixes           1 | 1 2 | 1 2 3 | 2 3 4 | 3 4 5 | 4 5 6       each asked for what followed its newest place
whole              . . . . 5 6 7       no targets
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .column import Ints
from .log import Log


@dataclass(frozen=True, eq=False)
class Spans:
    """Stretches of flat arrays, one a history, and at which of their places a target is asked."""

    begin: Ints  # [H] flat place of the oldest event
    lengths: Ints  # [H] at least one
    users: Ints  # [H]
    asked: Callable[
        [Ints], NDArray[np.bool_]
    ]  # places counted from the newest -> whether a target is asked there

    def __len__(self) -> int:
        return len(self.begin)


def _every(position: Ints) -> NDArray[np.bool_]:
    return position >= 0


def _newest(position: Ints) -> NDArray[np.bool_]:
    return position == 0


def _none(position: Ints) -> NDArray[np.bool_]:
    return np.zeros(position.shape, dtype=bool)


def last(train: Log, max_len: int) -> Spans:
    """The newest max_len events that something followed."""
    users = np.flatnonzero(train.lengths > 1)
    end = train.offsets[users + 1] - 1
    lengths = np.minimum(train.lengths[users] - 1, max_len)
    return Spans(begin=end - lengths, lengths=lengths, users=users, asked=_every)


def windows(train: Log, max_len: int) -> Spans:
    """All events that something followed, cut into stretches of max_len from the newest end."""
    known = np.flatnonzero(train.lengths > 1)
    counts = -(-(train.lengths[known] - 1) // max_len)
    users = np.repeat(known, counts)
    older = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    end = train.offsets[users + 1] - 1 - older * max_len
    begin = np.maximum(end - max_len, train.offsets[users])
    return Spans(begin=begin, lengths=end - begin, users=users, asked=_every)


def prefixes(train: Log, max_len: int) -> Spans:
    """Every prefix that something followed, its newest max_len events, asked at the newest alone."""
    owners = train.owners
    newest = np.flatnonzero(np.arange(train.n_events) < train.offsets[owners + 1] - 1)
    users = owners[newest]
    begin = np.maximum(newest + 1 - max_len, train.offsets[users])
    return Spans(begin=begin, lengths=newest + 1 - begin, users=users, asked=_newest)


def whole(train: Log, max_len: int) -> Spans:
    """The newest max_len events, users of one event included, nothing asked."""
    users = np.flatnonzero(train.lengths > 0)
    end = train.offsets[users + 1]
    lengths = np.minimum(train.lengths[users], max_len)
    return Spans(begin=end - lengths, lengths=lengths, users=users, asked=_none)


HISTORIES: dict[str, Callable[[Log, int], Spans]] = {
    "last": last,
    "windows": windows,
    "prefixes": prefixes,
    "whole": whole,
}
