"""Histories packed into rows: there is no padding, and a training step has one shape.

spans    a a a a b b d d c c c e e e e e ...            what becomes a history, in the log's flat arrays
order    leftovers of last epoch, then the rest shuffled
batch    exactly B histories, longest first into the first row with space:

         row 0   e e e e e b b .
         row 1   a a a a c c c .
         row 2   d d . . . . . .
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ..config import Part
from ..types import Batch
from .column import Ints
from .layout import Columns, Layout, first_fit, laid_out, width_of
from .log import Log
from .span import HISTORIES, Spans

CHUNK = 64  # batches laid out at a time, the next ones while the device works


class RowsConfig(Part):
    """What becomes a history in training, and how many share a step."""

    history: Literal["last", "windows", "prefixes", "whole"] = "last"
    max_len: Annotated[int, Field(ge=1)] = 50  # of a history, in training and in evaluation
    batch: Annotated[int, Field(ge=1)] = 256  # histories in a step


class Rows:
    """A training log as batches of one shape, every history once an epoch, in a new order each time."""

    def __init__(
        self,
        train: Log,
        config: RowsConfig,
        *,
        generator: torch.Generator,
        device: torch.device,
        room: int = 0,
        steady: bool = False,
    ) -> None:
        self.spans: Spans = HISTORIES[config.history](train, config.max_len)
        self.columns = Columns(train.items, train.times, device)
        self.generator = generator
        self.room, self.width = room, width_of(config.max_len, room)
        self.n_histories = min(config.batch, len(self.spans))
        self.n_steps = len(self.spans) // max(self.n_histories, 1)
        self.steady = steady  # every step has all its rows, used or not, as a captured step wants
        self.left_over = torch.empty(0, dtype=torch.int64)
        self.n_rows = self._usual_rows()

    def epoch(self) -> Iterator[Batch]:
        """The batches of the next epoch; laid out ahead of the device."""
        order = self._next_order()
        chunks = range(0, self.n_steps, CHUNK)
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(self._laid, order[: chunks.step]) if self.n_steps else None
            for first in chunks:
                assert coming is not None
                layout, spans = coming.result()
                coming = ahead.submit(self._laid, order[first + CHUNK : first + 2 * CHUNK])
                for step in range(len(spans)):
                    yield self._batch(layout, step, spans[step])

    def _laid(self, spans: Ints) -> tuple[Layout, Ints]:
        if not len(spans):
            return Layout(*(np.zeros(0, dtype=np.int64),) * 5), spans
        begin, lengths = self.spans.begin[spans], self.spans.lengths[spans]
        return laid_out(begin, lengths, width=self.width, room=self.room, n_rows=self.n_rows), spans

    def _batch(self, layout: Layout, step: int, spans: Ints) -> Batch:
        n_rows = self.n_rows if self.steady else int(layout.n_rows[step])
        event = self.spans.begin[spans] + self.spans.lengths[spans] - 1
        history, source = self.columns.history(
            layout, step, users=self.spans.users[spans], event=event, n_rows=n_rows
        )
        follower = (source + 1).clamp(max=len(self.columns.items) - 1)
        asked = torch.from_numpy(self.spans.asked(layout.position[step, :n_rows] - self.room))
        asked = asked.to(source.device, non_blocking=True) & (source >= 0)
        return Batch(history=history, targets=torch.where(asked, self.columns.items[follower], -1))

    def _next_order(self) -> Ints:
        """Which spans share which step: [S, B], what the last epoch left over first."""
        shuffled = torch.randperm(len(self.spans), generator=self.generator)
        waiting = torch.zeros(len(self.spans), dtype=torch.bool)
        waiting[self.left_over] = True
        order = torch.cat([self.left_over, shuffled[~waiting[shuffled]]]).numpy()
        taken = self.n_steps * self.n_histories
        steps, spare = order[:taken].reshape(self.n_steps, self.n_histories), order[taken:].copy()
        self._exchange(steps, spare, waiting.numpy())
        self.left_over = torch.from_numpy(spare)
        return steps

    def _rows_needed(self, steps: Ints) -> Ints:
        lengths = self.spans.lengths[steps] + self.room
        chunks = range(0, len(lengths), CHUNK)
        parts = [first_fit(lengths[first : first + CHUNK], self.width)[2] for first in chunks]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def _usual_rows(self) -> int:
        """Near the 99th percentile of what a step's histories need."""
        if self.n_histories == len(self.spans):
            return max(1, int(self._rows_needed(np.arange(len(self.spans))[None])[0]))
        own = np.random.default_rng(0)
        tries = own.integers(len(self.spans), size=(256, self.n_histories))
        return int(np.quantile(self._rows_needed(tries), 0.99, method="higher"))

    def _exchange(self, steps: Ints, spare: Ints, waiting: NDArray[np.bool_]) -> None:
        """Makes steps fit their rows: a too long one gives its longest history away for a shorter one.

        It goes to the roomiest step, or into the next epoch where no step has room, and never there twice.
        """
        lengths, need = self.spans.lengths, self._rows_needed(steps)
        for _ in range(8 * len(steps)):
            if need.max(initial=0) <= self.n_rows:
                return
            step, roomy = int((need > self.n_rows).argmax()), int(need.argmin())
            later = need[roomy] >= self.n_rows
            other = spare if later else steps[roomy]
            given = np.where(waiting[steps[step]] & later, 0, lengths[steps[step]])
            if given.max() <= lengths[other].min(initial=self.width):
                break
            long, short = given.argmax(), lengths[other].argmin()
            steps[step, long], other[short] = other[short], steps[step, long]
            need[[step, roomy]] = self._rows_needed(steps[[step, roomy]])
        # nothing left to exchange: more rows, from now on
        self.n_rows = max(self.n_rows, int(need.max(initial=0)))

    def state(self) -> dict[str, Tensor]:
        """All that the next epoch depends on."""
        rows = torch.tensor(self.n_rows)
        return {"left_over": self.left_over, "generator": self.generator.get_state(), "n_rows": rows}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.left_over, self.n_rows = state["left_over"], int(state["n_rows"])
        self.generator.set_state(state["generator"])
