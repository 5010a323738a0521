"""item_knn equals a slow spelling of its two equations, however it is chunked."""

import tomllib
from collections import defaultdict
from collections.abc import Sequence
from importlib import resources

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from twoview.data.layout import pack
from twoview.data.log import Log
from twoview.models import item_knn
from twoview.models.base import Facts
from twoview.models.item_knn import Config, ItemKnn
from twoview.types import History

N_ITEMS = 7

histories_in_some_log = st.lists(st.lists(st.integers(0, N_ITEMS - 1), max_size=9), min_size=1, max_size=6)
some_config = st.builds(
    Config,
    window=st.integers(2, 12),
    forward=st.sampled_from([0.0, 1.0]),
    backward=st.sampled_from([0.0, 0.3, 1.0]),
    distance=st.sampled_from([0.0, 0.7]),
    transition=st.sampled_from([0.0, 2.0]),
    alpha=st.sampled_from([0.0, 0.6]),
    beta=st.sampled_from([0.0, 0.3]),
    decay=st.sampled_from([0.0, 0.6, 1.0]),
)


def log_of(histories: Sequence[Sequence[int]]) -> Log:
    return Log(
        offsets=np.cumsum([0, *map(len, histories)]),
        items=np.array([item for history in histories for item in history], dtype=np.int32),
        times=None,
        user_ids=[f"u{user}" for user in range(len(histories))],
        item_ids=[f"i{item}" for item in range(N_ITEMS)],
    )


def counted(log: Log, config: Config) -> ItemKnn:
    model = ItemKnn(config, Facts.of(log, max_len=9))
    model.prepare(log, 0)
    return model


def asking(*histories: Sequence[int]) -> History:
    width = max(map(len, histories))
    items = torch.tensor([[*history, *[0] * (width - len(history))] for history in histories])
    return pack(items, torch.tensor([len(history) for history in histories]))


def near_by_loops(histories: Sequence[Sequence[int]], config: Config) -> dict[tuple[int, int], float]:
    popularity = np.bincount([item for history in histories for item in history], minlength=N_ITEMS)
    near: dict[tuple[int, int], float] = defaultdict(float)
    for recent in (history[-config.window :] for history in histories):
        for i, a in enumerate(recent):
            for j, b in enumerate(recent):
                if i != j:
                    worth = (config.forward if j > i else config.backward) / abs(i - j) ** config.distance
                    worth += config.transition if j == i + 1 else 0
                    near[a, b] += worth / popularity[a] ** config.alpha / popularity[b] ** config.beta
    return near


@given(histories_in_some_log, some_config, st.lists(st.integers(0, N_ITEMS - 1), min_size=1, max_size=5))
@settings(max_examples=60)
def test_scores_are_those_of_a_slow_spelling(histories, config: Config, history: list[int]) -> None:
    near = near_by_loops(histories, config)
    wanted = [
        sum(config.decay**back * near[a, b] for back, a in enumerate(reversed(history)))
        for b in range(N_ITEMS)
    ]
    scores = counted(log_of(histories), config).score(asking(history))
    assert scores.tolist()[0] == pytest.approx(wanted, rel=1e-5, abs=1e-6)


@given(histories_in_some_log)
def test_chunks_change_no_bit(histories) -> None:
    log, history = log_of(histories), asking([1, 2, 3], [0], [5, 6])
    whole = counted(log, Config(transition=1.0))
    scores = whole.score(history)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_knn, "PAIRS_AT_ONCE", 5)
        parts = counted(log, Config(transition=1.0))
        patch.setattr(item_knn, "NEIGHBOURS_AT_ONCE", 1)
        one_by_one = parts.score(history)
    assert torch.equal(whole.neighbours, parts.neighbours)
    assert torch.equal(whole.nearness, parts.nearness)
    assert one_by_one.allclose(scores)


def test_each_item_keeps_its_nearest_and_the_lower_number_of_equals() -> None:
    log = log_of([[0, 1], [0, 2], [0, 2], [0, 3], [0, 4]])
    model = counted(log, Config(alpha=0.0, beta=0.0, backward=0.0, neighbours=2))
    assert model.neighbours[0].tolist() == [2, 1]
    assert model.nearness[0].tolist() == [2.0, 1.0]
    assert model.score(asking([0])).tolist() == [[0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0]]


def test_a_history_scores_alone_as_it_does_among_others() -> None:
    model = counted(log_of([[0, 1, 2, 3], [3, 1, 5], [6, 5, 4, 0]]), Config())
    alone = [model.score(asking(history))[0] for history in ([1, 2], [3], [4, 5, 6, 0])]
    assert torch.equal(model.score(asking([1, 2], [3], [4, 5, 6, 0])), torch.stack(alone))


def test_a_hidden_place_asks_nothing() -> None:
    model = counted(log_of([[0, 1], [2, 3]]), Config(alpha=0.0, beta=0.0, decay=0.5))
    history = asking([0, 2])
    history.hidden[0, 1] = True
    assert model.score(history).tolist()[0] == pytest.approx([0, 0.5, 0, 0, 0, 0, 0])


def test_an_item_nobody_had_asks_and_answers_nothing() -> None:
    model = counted(log_of([[0, 1, 2]]), Config())
    assert model.score(asking([6])).count_nonzero() == 0
    assert model.score(asking([0, 1, 2]))[0, 3:].count_nonzero() == 0


def test_the_memory_recipe_by_hand() -> None:
    recipe = resources.files("twoview.recipes").joinpath("item_knn/memory.toml").read_text(encoding="utf-8")
    model = counted(log_of([[0, 1, 2], [0, 1, 3]]), Config(**tomllib.loads(recipe)))
    forward = 0.6 * 2**-0.7 / 2**0.6 + 1 / 2**0.6  # item 2, asked by 0 one step back and two apart, and by 1
    backward = 2 * 0.3 / (2**0.6 * 2**0.3)  # item 0, asked by 1 for both users
    scores = model.score(asking([0, 1]))[0]
    assert scores[[0, 2, 3]].tolist() == pytest.approx([backward, forward, forward])


def test_counting_again_starts_over() -> None:
    log = log_of([[0, 1, 2, 3, 1]])
    model = counted(log, Config())
    before = model.nearness.clone()
    model.prepare(log_of([[4, 5]]), 1)
    model.prepare(log, 2)
    assert torch.equal(model.nearness, before)
