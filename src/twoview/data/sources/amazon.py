"""Amazon's ratings: 2014 is `user,item,rating,time`, 2018 `item,user,rating,time`, 2023 has a header and ms.

2014 and 2018 have no header and the same four columns: which came first is told from how the ids look.
An item is B and nine more letters, or a book's ISBN; a user is A and mostly twelve or thirteen more.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .base import Table, Wanted, delimited, events_of, head_of

INSIDE: tuple[str, ...] = ()  # any csv may be one; a folder of csv files is the separated text's
ITEM = re.compile(r"B[0-9A-Z]{9}|[0-9]{9}[0-9X]")
USER = re.compile(r"A[0-9A-Z]{8,20}")
HEADER = "user_id,parent_asin,rating,timestamp"


def sniff(path: Path, head: Sequence[str]) -> bool:
    """Whether it has 2023's header, or four columns of which two look like Amazon's users and items."""
    return edition_of(head) is not None


def read(path: Path, wanted: Wanted) -> Table:
    """The ratings, columns named by their edition."""
    edition = edition_of(head_of(path))
    if edition == "2023":
        events, placed = delimited(path, ","), Wanted()
    else:
        user, item = ("2", "1") if edition == "2018" else ("1", "2")
        events, placed = (
            delimited(path, ",", list("1234")),
            Wanted(user=user, item=item, rating="3", time="4"),
        )
    named = {role: name for role, name in vars(wanted).items() if name}
    found = events_of(events, replace(placed, **named), path)
    return Table(kind=f"Amazon ratings {edition}", events=events, roles=found, files=[path])


def edition_of(head: Sequence[str]) -> str | None:
    """2014, 2018 or 2023; None when it is none of them."""
    if head and head[0].startswith(HEADER):
        return "2023"
    rows = [line.split(",") for line in head]
    if not rows or any(len(row) != 4 for row in rows):
        return None
    for edition, user, item in (("2014", 0, 1), ("2018", 1, 0)):
        alike = sum(bool(USER.fullmatch(row[user]) and ITEM.fullmatch(row[item])) for row in rows)
        if alike >= 0.9 * len(rows):  # a few old accounts have other ids
            return edition
    return None
