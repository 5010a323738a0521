"""From scores to metrics beside an outside oracle: ties among any items, some of them seen before."""

import ir_measures
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from twoview.data.log import Log
from twoview.data.split import leave_one_out
from twoview.evaluate.metrics import CUTOFFS, METRICS
from twoview.evaluate.ranks import Questions, ranks
from twoview.types import History

N_ITEMS = 12
THEIRS = {f"recall@{k}": ir_measures.R @ k for k in CUTOFFS}
THEIRS |= {f"ndcg@{k}": ir_measures.nDCG @ k for k in CUTOFFS} | {"mrr": ir_measures.RR}


class Told:
    """Scores each user as it was told to."""

    def __init__(self, scores: Tensor) -> None:
        self.scores = scores

    def score(self, history: History, /) -> Tensor:
        return self.scores[history.users]


def oracle(rows: list[list[float]], found: list[list[int]]) -> dict[str, list[float]]:
    """Each metric of each user, the mean over every place the target can take among those it ties with."""
    targets, docs = [], []
    for user, (row, history) in enumerate(zip(rows, found, strict=True)):
        target = history[-1]
        others = [item for item in range(N_ITEMS) if item != target and item not in history[:-1]]
        for settled in range(1 + sum(row[item] == row[target] for item in others)):
            query = f"{user} {settled}"
            targets.append(ir_measures.Qrel(query, str(target), 1))
            order = sorted(others, key=lambda item: -row[item])
            order.insert(sum(row[item] > row[target] for item in others) + settled, target)
            docs += [
                ir_measures.ScoredDoc(query, str(item), -float(place)) for place, item in enumerate(order)
            ]
    values: dict[tuple[str, int], list[float]] = {}
    for each in ir_measures.iter_calc(list(THEIRS.values()), targets, docs):
        values.setdefault((str(each.measure), int(each.query_id.split()[0])), []).append(each.value)
    return {
        name: [float(np.mean(values[str(measure), user])) for user in range(len(rows))]
        for name, measure in THEIRS.items()
    }


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.permutations(range(N_ITEMS)).flatmap(lambda p: st.integers(3, 8).map(lambda n: list(p[:n]))),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 2**31),
    st.integers(1, 6),
)
def test_scores_with_ties_are_worth_what_an_outside_oracle_says(found, seed: int, levels: int) -> None:
    scores = torch.randint(
        levels, (len(found), N_ITEMS), generator=torch.Generator().manual_seed(seed)
    ).float()
    log = Log(
        offsets=np.cumsum([0, *map(len, found)]),
        items=np.array([item for history in found for item in history], dtype=np.int32),
        times=None,
        user_ids=[f"u{user}" for user in range(len(found))],
        item_ids=[f"i{item}" for item in range(N_ITEMS)],
    )
    mine = ranks(Told(scores), Questions(leave_one_out(log).test, max_len=4))
    for name, wanted in oracle(scores.tolist(), found).items():
        assert METRICS[name](mine) == pytest.approx(wanted, abs=1e-9)
