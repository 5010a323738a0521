"""A view is a valid History of its own: what stays keeps its targets, and the input stays as it was."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from twoview.config import Part
from twoview.data.augment import (
    AnyConfig,
    Crop,
    CropConfig,
    Keep,
    KeepConfig,
    Mask,
    MaskConfig,
    Reorder,
    ReorderConfig,
    lengths_of,
)
from twoview.data.layout import Columns, laid_out
from twoview.types import Batch

CPU = torch.device("cpu")
VIEWS: dict[str, Part] = {
    "keep": KeepConfig(),
    "crop": CropConfig(),
    "mask": MaskConfig(),
    "reorder": ReorderConfig(),
    "kept": ReorderConfig(asks="kept"),
    "any": AnyConfig(),
}
every_view = pytest.mark.parametrize("view", [config.build() for config in VIEWS.values()], ids=VIEWS)


def batch_of(lengths: Sequence[int]) -> Batch:
    """Histories of consecutive items, each place asked for the next: targets tell what followed."""
    lengths, begin = np.array(lengths)[None], np.cumsum([0, *lengths])[None, :-1] + np.arange(len(lengths))
    columns = Columns(np.arange(lengths.sum() + lengths.size, dtype=np.int32), None, CPU)
    layout = laid_out(begin, lengths, width=64)
    users = np.arange(lengths.size)
    history, _ = columns.history(layout, 0, users=users, event=users, n_rows=int(layout.n_rows[0]))
    return Batch(history=history, targets=torch.where(history.real, history.items + 1, -1))


MIXED = batch_of([1, 2, 3, 5, 8, 13, 21, 34, 50])


def seen(view: nn.Module, batch: Batch = MIXED, *, seed: int = 0) -> Batch:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return view(batch)


def columns_of(batch: Batch) -> dict[str, Tensor]:
    return vars(batch.history) | {"targets": batch.targets}


def each(batch: Batch, name: str) -> list[list[int]]:
    """A column by history, oldest first."""
    owner, values = batch.history.owner.flatten(), columns_of(batch)[name].flatten()
    return [values[owner == one].tolist() for one in range(batch.history.n_histories)]


@every_view
@pytest.mark.parametrize("seed", range(5))
def test_every_view_is_a_valid_history(view, seed) -> None:
    batch = seen(view, seed=seed)
    history = batch.history
    width = history.owner.shape[1]
    for one, positions in enumerate(each(batch, "position")):
        places = (history.owner.flatten() == one).nonzero()[:, 0].tolist()
        assert len(places) >= 1 and places == list(range(places[0], places[-1] + 1))
        assert places[0] // width == places[-1] // width
        assert positions == list(range(len(places)))[::-1]
        assert history.newest[one] == places[-1]
    assert (batch.targets[~history.real] == -1).all() and not history.hidden[~history.real].any()
    assert all(not all(hidden) for hidden in each(batch, "hidden"))


@every_view
def test_what_a_view_is_given_is_never_written_to(view) -> None:
    before = {name: column.clone() for name, column in columns_of(MIXED).items()}
    versions = {name: column._version for name, column in columns_of(MIXED).items()}
    seen(view)
    for name, column in columns_of(MIXED).items():
        assert torch.equal(column, before[name]) and column._version == versions[name]


@every_view
def test_equal_seeds_give_equal_views_of_the_same_shape(view) -> None:
    first, again = columns_of(seen(view, seed=3)), columns_of(seen(view, seed=3))
    for name, column in columns_of(MIXED).items():
        assert torch.equal(first[name], again[name])
        assert (first[name].shape, first[name].dtype) == (column.shape, column.dtype)


@pytest.mark.parametrize("name", ["crop", "mask", "reorder", "any"])
def test_another_seed_gives_another_view(name) -> None:
    first, other = (columns_of(seen(VIEWS[name].build(), seed=seed)) for seed in (0, 1))
    assert any(not torch.equal(first[column], other[column]) for column in first)


@every_view
def test_a_view_needs_no_value_to_know_its_shapes(view) -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        made = columns_of(view(MIXED))
    assert {name: column.shape for name, column in made.items()} == {
        name: column.shape for name, column in columns_of(MIXED).items()
    }


def test_keep_is_the_batch_itself() -> None:
    assert Keep()(MIXED) is MIXED


@pytest.mark.parametrize("seed", range(5))
def test_crop_keeps_a_stretch_with_its_targets(seed) -> None:
    cropped = seen(Crop(0.6), seed=seed)
    for items, own in zip(each(cropped, "items"), each(MIXED, "items"), strict=True):
        assert len(items) == max(1, len(own) * 6 // 10)
        assert items == list(range(items[0], items[0] + len(items))) and set(items) <= set(own)
    assert each(cropped, "targets") == [[item + 1 for item in items] for items in each(cropped, "items")]


@pytest.mark.parametrize("share", ["0.1", "0.29", "0.3", "0.58", "0.6", "0.7", "0.9"])
def test_the_share_that_stays_is_rounded_down_as_on_paper(share) -> None:
    batch = batch_of(range(1, 51))
    sizes = lengths_of(seen(Crop(float(share)), batch).history)
    assert sizes.tolist() == [max(1, int(Fraction(share) * n)) for n in range(1, 51)]


def test_crop_begins_anywhere_alike() -> None:
    cropped = seen(Crop(0.5), batch_of([6] * 4000))
    offsets = Counter(items[0] % 7 for items in each(cropped, "items"))
    assert set(offsets) == {0, 1, 2, 3}
    assert max(abs(count - 1000) for count in offsets.values()) < 110  # 4 standard deviations


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", ["0.3", "0.5", "0.9"])
def test_mask_hides_its_share_rounded_up_or_down_and_never_all(seed, share) -> None:
    masked = seen(Mask(float(share)), seed=seed)
    for hidden in each(masked, "hidden"):
        wanted = Fraction(share) * len(hidden)
        assert sum(hidden) < len(hidden)
        assert sum(hidden) in {min(n, len(hidden) - 1) for n in (int(wanted), -int(-wanted // 1))}


def test_mask_hides_its_share_in_the_mean_and_any_place_alike() -> None:
    hidden = torch.tensor(each(seen(Mask(0.3), batch_of([5] * 2000)), "hidden")).float()
    assert hidden.sum(1).mean().item() == pytest.approx(1.5, abs=0.045)
    assert hidden.mean(0).tolist() == pytest.approx([0.3] * 5, abs=0.041)


def test_mask_moves_nothing() -> None:
    masked = columns_of(seen(Mask(0.3)))
    kept = {name: column for name, column in columns_of(MIXED).items() if name != "hidden"}
    assert all(torch.equal(masked[name], column) for name, column in kept.items())


@pytest.mark.parametrize("seed", range(5))
def test_reorder_shuffles_one_stretch_and_keeps_everything_else(seed) -> None:
    shuffled = seen(Reorder(0.6), seed=seed)
    for items, own in zip(each(shuffled, "items"), each(MIXED, "items"), strict=True):
        assert Counter(items) == Counter(own)
        moved = [k for k in range(len(own)) if items[k] != own[k]]
        assert not moved or moved[-1] - moved[0] < max(1, len(own) * 6 // 10)
    for name in ("owner", "position", "newest", "hidden", "times"):
        assert torch.equal(columns_of(shuffled)[name], columns_of(MIXED)[name])
    assert each(shuffled, "items") != each(MIXED, "items")


def test_reorder_asks_for_the_new_order_and_the_last_place_for_its_own() -> None:
    shuffled = seen(Reorder(0.6))
    triples = zip(
        *(each(shuffled, name) for name in ("items", "targets")), each(MIXED, "targets"), strict=True
    )
    for items, targets, own in triples:
        assert targets == [*items[1:], own[-1]]


def test_reorder_asks_for_nothing_that_was_not_asked() -> None:
    newest_alone = torch.where(MIXED.history.position == 0, MIXED.targets, -1)
    shuffled = seen(Reorder(0.6), Batch(history=MIXED.history, targets=newest_alone))
    assert torch.equal(shuffled.targets, newest_alone)


def test_kept_targets_are_those_of_the_unshuffled_history() -> None:
    new, kept = seen(Reorder(0.6)), seen(Reorder(0.6, "kept"))
    assert torch.equal(kept.targets, MIXED.targets)
    assert torch.equal(kept.history.items, new.history.items)


def test_all_orders_of_a_stretch_come_alike() -> None:
    shuffled = seen(Reorder(0.6), batch_of([5] * 3000))
    whole = [tuple(item % 6 for item in items) for items in each(shuffled, "items")]
    first = Counter(order[:3] for order in whole if order[3:] == (3, 4))
    assert len(first) == 6
    assert sum(count > 100 for count in first.values()) == 6


def test_equal_random_numbers_lose_no_item_and_hide_no_more(monkeypatch) -> None:
    def always_half(*shape, **kept):
        return torch.full(torch.empty(*shape).shape, 0.5)

    monkeypatch.setattr(torch, "rand", always_half)
    for items, own in zip(each(Reorder(0.6)(MIXED), "items"), each(MIXED, "items"), strict=True):
        assert Counter(items) == Counter(own)
    for hidden in each(Mask(0.3)(MIXED), "hidden"):
        assert sum(hidden) == min(int(len(hidden) * 0.3 + 0.5), len(hidden) - 1)


def test_a_hidden_place_moves_with_its_item() -> None:
    masked = seen(Mask(0.5))
    moved = seen(Reorder(0.9), masked, seed=1)
    secret = [
        {item for item, hidden in zip(items, marks, strict=True) if hidden}
        for items, marks in zip(each(masked, "items"), each(masked, "hidden"), strict=True)
    ]
    for items, marks, own in zip(each(moved, "items"), each(moved, "hidden"), secret, strict=True):
        assert {item for item, hidden in zip(items, marks, strict=True) if hidden} == own


def kind_of(items: list[int], hidden: list[bool], n: int) -> str:
    """Which of the three views a history of n places met."""
    if len(items) < n:
        return "crop"
    return "mask" if any(hidden) else "reorder"


def test_any_draws_a_view_for_each_history_alike() -> None:
    batch = batch_of([10] * 900)
    mixed = seen(AnyConfig().build(), batch)
    kinds = Counter(
        kind_of(items, hidden, 10)
        for items, hidden in zip(each(mixed, "items"), each(mixed, "hidden"), strict=True)
    )
    assert set(kinds) == {"crop", "mask", "reorder"}
    assert max(abs(count - 300) for count in kinds.values()) < 57  # 4 standard deviations
    for items, hidden, targets in zip(
        *(each(mixed, name) for name in ("items", "hidden", "targets")), strict=True
    ):
        assert targets[:-1] == items[1:] and (kind_of(items, hidden, 10) != "crop" or len(items) == 6)


@every_view
def test_a_view_of_a_view_is_a_view(view) -> None:
    cropped = seen(Crop(0.5), seen(Mask(0.5), seed=2))
    again = seen(view, cropped, seed=1)
    for items, own in zip(each(again, "items"), each(cropped, "items"), strict=True):
        assert items and not Counter(items) - Counter(own)
    history = again.history
    assert torch.equal(history.owner.flatten()[history.newest], torch.arange(history.n_histories))
    assert (history.position.flatten()[history.newest] == 0).all()
    assert not history.hidden[~history.real].any()


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1])
@pytest.mark.parametrize("config", [CropConfig, MaskConfig, ReorderConfig])
def test_a_share_of_nothing_or_all_is_refused(config, share) -> None:
    with pytest.raises(ValueError, match="share"):
        config(share=share)
