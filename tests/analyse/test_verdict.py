"""What is said of which numbers, each rule at its bound."""

from typing import Any

import numpy as np
import pytest

from twoview.analyse.group import grouped, label
from twoview.analyse.verdict import verdict

SPREAD = {"uniformity": -2.0}


def found(latent: dict[str, Any] | None = None, contrast: dict[str, Any] | None = None) -> dict[str, Any]:
    """A diagnosis in good health, but for what is told."""
    unwell = {"active": 64, "nats": 4.0, "ceiling": 6.9, "kept": 0.2, "drawn": True} | (latent or {})
    negatives = {"one_minus_p": 0.9, "ess": 0.5, "effective": 60.0, "each": 120.0}
    met = {"saturation": 0.2, "log_k": 4.8, "fades": True}
    pairs = {"alignment": 0.5, "uniformity": -2.0, "effective_rank": 30.0, "dim": 64} | (contrast or {})
    return {
        "model": "contrastvae",
        "latent": {
            "drawn": unwell["drawn"],
            "active_units": {"active": unwell["active"], "of": 64},
            "information": {"sampled": unwell["nats"], "ceiling": unwell["ceiling"]},
            "decoder": {"kept": unwell["kept"]},
        },
        "contrast": {
            **{name: pairs[name] for name in ("alignment", "uniformity", "effective_rank", "dim")},
            "negatives": {**negatives, **met, **{k: v for k, v in pairs.items() if k in (*negatives, *met)}},
        },
        "states": {"histories": SPREAD},
        "terms": {"kl": {"gradient_share": 0.2}, "contrast": {"gradient_share": 0.1}},
    }


def states(diagnosed: dict[str, Any]) -> list[str]:
    return [sign["state"] for sign in verdict(diagnosed)]


def test_good_numbers_are_healthy_and_are_named() -> None:
    (sign,) = verdict(found())
    assert sign["state"] == "healthy" and sign["try"] == "nothing"
    assert "64 of 64 units" in sign["because"] and "4.00 nats" in sign["because"]


@pytest.mark.parametrize(
    ("latent", "expected"),
    [
        ({"active": 0}, "collapsed"),
        ({"active": 6}, "collapsing"),
        ({"active": 7}, "healthy"),
        ({"nats": 0.24}, "collapsed"),
        ({"nats": -0.3}, "collapsed"),
        ({"nats": 0.26}, "collapsing"),
        ({"nats": 1.0}, "healthy"),
        ({"nats": 0.9, "ceiling": 1.6}, "healthy"),
        ({"nats": 0.1, "drawn": False}, "healthy"),
        ({"kept": 0.9}, "collapsed"),
        ({"kept": 0.75}, "collapsing"),
        ({"kept": 0.74}, "healthy"),
    ],
)
def test_a_latent_is_judged_at_the_bounds(latent: dict[str, Any], expected: str) -> None:
    assert states(found(latent=latent)) == [expected]


@pytest.mark.parametrize(
    ("contrast", "expected"),
    [
        ({"one_minus_p": 0.099}, "saturated"),
        ({"one_minus_p": 0.101}, "healthy"),
        ({"effective": 1.9}, "saturated"),
        ({"effective": 1.9, "each": 7.0}, "healthy"),
        ({"alignment": 0.0}, "saturated"),
        ({"uniformity": -0.01}, "collapsed"),
        ({"effective_rank": 3.0}, "collapsing"),
        ({"effective_rank": 1.6, "dim": 8}, "healthy"),
    ],
)
def test_a_contrast_is_judged_at_the_bounds(contrast: dict[str, Any], expected: str) -> None:
    assert states(found(contrast=contrast)) == [expected]


def test_several_states_hold_at_once_the_gravest_first() -> None:
    both = found(latent={"kept": 0.8, "active": 0}, contrast={"one_minus_p": 0.01})
    assert states(both) == ["collapsed", "collapsing", "saturated"]


def test_each_sign_says_its_number_its_bound_and_what_to_try() -> None:
    (sign,) = verdict(found(latent={"nats": 0.1}))
    assert "0.10 nats" in sign["because"] and "less than 0.25" in sign["because"]
    assert "kl.schedule" in sign["try"] and "free_bits" in sign["try"]


def test_a_contrast_that_pulls_harder_than_the_kl_is_what_to_loosen_first() -> None:
    pulled = found(latent={"active": 0})
    pulled["terms"] = {"kl": {"gradient_share": 0.01}, "contrast": {"gradient_share": 0.9}}
    assert verdict(pulled)[0]["try"].startswith("a higher contrast.temperature")


def test_an_objective_whose_gradient_stays_is_not_advised_to_become_one() -> None:
    fading, flat = (verdict(found(contrast={"one_minus_p": 0.0, "fades": each}))[0] for each in (True, False))
    assert "flat_nce" in fading["try"] and "flat_nce" not in flat["try"]


def test_a_model_without_latent_or_contrast_has_nothing_to_collapse() -> None:
    bare = found() | {"latent": None, "contrast": None}
    (sign,) = verdict(bare)
    assert sign["state"] == "healthy" and "nothing to collapse" in sign["because"]
    bare["states"] = {"histories": {"uniformity": -0.01}}
    assert states(bare) == ["collapsed"]
    bare["states"] = {"histories": None}
    assert states(bare) == ["healthy"]


def test_groups_hold_their_upper_bound_and_leave_out_the_empty() -> None:
    rows = grouped(np.array([0, 5, 1, 6, 1000]), {"sigma": np.array([1.0, 2.0, 4.0, 8.0, 16.0])})
    assert [row["group"] for row in rows] == ["0", "1-5", "6-10", "over 100"]
    assert [row["histories"] for row in rows] == [1, 2, 1, 1]
    assert [row["sigma"] for row in rows] == [1.0, 3.0, 8.0, 16.0]
    assert label(5) == "51-100"
