"""The card printed beside every number: what was asked of whom, and how it was counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from ..data.split import Cases, Split
from ..error import ProtocolError

PARTS = ("valid", "test")
CONVENTIONS = {
    "ours": "all candidates are ranked",
    "recbole": "items seen before stay candidates",
    "released": "items seen before score 0, nothing past place 40 counts; the released model's columns "
    "of padding and mask would compete as well and cannot be rebuilt",
    "sampled-100": "the target among 100 others, drawn from all items its user was not shown before: "
    "the mean over every draw, in closed form",
}


@dataclass(frozen=True, kw_only=True)
class Card:
    """A way of counting; equal cards may share a table, whatever their seeds."""

    protocol: str  # how training, validation and test were parted
    split: str  # which cases: valid or test
    candidates: int  # items ranked for each case, before those seen leave
    seen: str  # removed or kept: what happens to items a user met before
    ties: str = "shared"  # a metric is its mean over random tie-breaking
    convention: str = "ours"  # or whose way of ranking this imitates
    users: int  # counted, each as much as any other
    cases: int
    repeated: float  # share of targets that their user had met before
    untrained: float  # share of targets without a training event
    left_out: Mapping[str, int]  # what is not asked, by reason
    seeds: Sequence[int] = field(compare=False)

    def lines(self) -> list[str]:
        """The card as a reader wants it, a fact a line."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.left_out.items() if count)
        ranked = f"candidates  all {self.candidates:,} items; items seen before are {self.seen}"
        if self.convention != "ours":
            ranked = f"counted as  {self.convention}, never beside ours: {CONVENTIONS[self.convention]}"
        return [
            f"protocol    {self.protocol}, {self.split}",
            ranked,
            f"ties        {self.ties}: a metric is its mean over random tie-breaking",
            f"counted     {self.users:,} users, {self.cases:,} cases; mean within a user, then over users",
            f"left out    {reasons or 'nothing'}",
            f"targets     {self.repeated:.2%} met before by the user, {self.untrained:.2%} never trained on",
            f"seeds       {', '.join(map(str, self.seeds))}",
        ]


def card(parts: Split, split: str, *, seen: str, seeds: Sequence[int]) -> Card:
    """The card of a split's valid or test cases."""
    if split not in PARTS:
        raise ProtocolError(f"no split {split!r}; there are {', '.join(PARTS)}")
    cases = {"valid": parts.valid, "test": parts.test}[split]
    if not len(cases):
        raise ProtocolError(f"{parts.protocol} asks nothing in {split}, so nothing can be counted")
    trained = np.bincount(parts.train.items, minlength=parts.train.n_items) > 0
    return Card(
        protocol=parts.protocol,
        split=split,
        candidates=cases.log.n_items,
        seen=seen,
        users=len(np.unique(cases.users)),
        cases=len(cases),
        repeated=float(repeats(cases).mean()),
        untrained=float((~trained[cases.targets]).mean()),
        left_out=dict(parts.left_out),
        seeds=list(seeds),
    )


def repeats(cases: Cases) -> NDArray[np.bool_]:
    """Whether each target had been met by its user before: [C]"""
    log = cases.log
    first = np.zeros(log.n_events, dtype=bool)
    first[np.unique(log.owners * log.n_items + log.items, return_index=True)[1]] = True
    return ~first[cases.places]


def refuse_mixed(cards: Mapping[str, Card]) -> None:
    """Nothing when all cards, by whose they are, count alike; else an error that names what differs."""
    (name, first), *others = cards.items()
    counted = [each.name for each in fields(Card) if each.compare]
    for other, rival in others:
        for each in counted:
            mine, theirs = getattr(first, each), getattr(rival, each)
            if mine != theirs:
                what = f"{each} is {mine!r} in {name} and {theirs!r} in {other}"
                raise ProtocolError(f"a table wants one protocol; {what}")
