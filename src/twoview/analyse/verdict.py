"""From numbers to words: healthy, collapsing, collapsed, saturated; why, and what to try.

Each rule looks at one number; several may speak. Every bound is argued in docs/diagnostics.md.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

FEW_UNITS = 0.1  # of all units
NO_INFORMATION, LITTLE_INFORMATION = 0.25, 1.0  # nats
DEAF, NEARLY_DEAF = 0.9, 0.75  # of ndcg@20 that shuffled latents keep
ONE_POINT = -0.05  # uniformity
FEW_DIRECTIONS = 0.05  # of all dimensions
TOLD_APART = 0.1  # 1 - p+
LONE_RIVAL = 2.0  # effective negatives
ENOUGH_RIVALS = 8  # below it so few are the batch's fault
SAME_VIEW = 1e-3  # squared distance on the unit sphere

LOOSER = "a lower kl.schedule.cap, a slower or cyclical kl.schedule, or kl.rate=free_bits"
GENTLER = "a higher contrast.temperature or a lower contrast_weight"


class Sign(NamedTuple):
    """A state with the number that says so and what to do about it."""

    state: str
    because: str
    advice: str

    def json(self) -> dict[str, str]:
        return {"state": self.state, "because": self.because, "try": self.advice}


def verdict(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """Every sign of illness in a diagnosis, the gravest first; without one, why the run is healthy."""
    latent, contrast, states = found["latent"], found["contrast"], found["states"]
    remedy = looser(found["terms"])
    signs = list(of_states(states) if latent is None else of_latent(latent, remedy))
    signs += [] if contrast is None else list(of_contrast(contrast, remedy))
    order = ("collapsed", "collapsing", "saturated")
    signs.sort(key=lambda sign: order.index(sign.state))
    return [sign.json() for sign in signs or [healthy(found)]]


def looser(terms: Mapping[str, Mapping[str, float]]) -> str:
    """What frees a latent: less of whichever term pulls at it harder, the contrast or the KL."""
    pulls = {name: terms.get(name, {}).get("gradient_share", 0.0) for name in ("kl", "contrast")}
    return f"{GENTLER}; then {LOOSER}" if pulls["contrast"] > pulls["kl"] else LOOSER


def of_states(states: Mapping[str, Any]) -> Iterator[Sign]:
    """What the states that meet the items say."""
    spread = states["histories"]
    if spread is not None and spread["uniformity"] > ONE_POINT:
        because = (
            f"the states of all histories are one point: uniformity {spread['uniformity']:.3f} > {ONE_POINT}"
        )
        yield Sign("collapsed", because, "a lower fit.lr, less dropout or a softmax likelihood")


def of_latent(latent: Mapping[str, Any], remedy: str) -> Iterator[Sign]:
    """What the posteriors say."""
    active, of = latent["active_units"]["active"], latent["active_units"]["of"]
    if active < max(1, FEW_UNITS * of):
        because = f"{active} of {of} units are active, fewer than {max(1, round(FEW_UNITS * of))}"
        yield Sign("collapsing" if active else "collapsed", because, remedy)
    nats, ceiling = latent["information"]["sampled"], latent["information"]["ceiling"]
    little = min(LITTLE_INFORMATION, ceiling / 2)  # a handful of histories cannot show more
    if latent["drawn"] and nats < little:
        gone = nats < NO_INFORMATION
        bound = NO_INFORMATION if gone else little
        because = f"a latent knows {max(nats, 0):.2f} nats of its history, less than {bound:.2f}"
        yield Sign("collapsed" if gone else "collapsing", because, remedy)
    kept = latent["decoder"]["kept"]
    if kept >= NEARLY_DEAF:
        deaf = kept >= DEAF
        bound = DEAF if deaf else NEARLY_DEAF
        because = f"other histories' latents keep {kept:.0%} of ndcg@20, at least {bound:.0%}"
        advice = f"{remedy}; more epochs if ndcg@20 itself is no better than popularity's"
        yield Sign("collapsed" if deaf else "collapsing", because, advice)


def of_contrast(contrast: Mapping[str, Any], remedy: str) -> Iterator[Sign]:
    """What the pairs say."""
    if contrast["uniformity"] > ONE_POINT:
        because = f"all latents are one point: uniformity {contrast['uniformity']:.3f} > {ONE_POINT}"
        yield Sign(
            "collapsed", because, "an objective that pushes apart (nt_xent, dcl), or a lower kl.schedule.cap"
        )
    few = max(1.5, FEW_DIRECTIONS * contrast["dim"])
    if contrast["effective_rank"] < few:
        because = (
            f"latents use {contrast['effective_rank']:.1f} of {contrast['dim']} directions, under {few:.1f}"
        )
        yield Sign("collapsing", because, remedy)
    if contrast["alignment"] < SAME_VIEW:
        because = f"the two views are the same: alignment {contrast['alignment']:.1e} < {SAME_VIEW}"
        yield Sign(
            "saturated",
            because,
            "views that change more (a higher share, crop, reorder) or a gaussian sampler",
        )
    if contrast["negatives"] is not None:
        yield from of_negatives(contrast["negatives"])


def of_negatives(negatives: Mapping[str, Any]) -> Iterator[Sign]:
    """What the scores against the negatives say."""
    if negatives["one_minus_p"] < TOLD_APART:
        used = f"{negatives['saturation']:.0%} of log K = {negatives['log_k']:.2f} is used up"
        because = f"pairs are told apart: 1 - p+ {negatives['one_minus_p']:.3f} < {TOLD_APART}, {used}"
        faded = "contrast=dcl or flat_nce, whose gradient does not fade; " if negatives["fades"] else ""
        yield Sign("saturated", because, f"{faded}{GENTLER}, views that change more, a larger rows.batch")
    if negatives["effective"] < LONE_RIVAL and negatives["each"] >= ENOUGH_RIVALS:
        several = f"of {negatives['each']:.0f} negatives {negatives['effective']:.1f} carry the weight"
        because = f"{several}, fewer than {LONE_RIVAL:.0f} (ESS/M {negatives['ess']:.3f})"
        yield Sign("saturated", because, "a higher contrast.temperature; a larger rows.batch changes nothing")


def healthy(found: Mapping[str, Any]) -> Sign:
    """Why there is nothing to say against a run."""
    latent, contrast = found["latent"], found["contrast"]
    if latent is None and contrast is None:
        because = f"{found['model']} has no latent and no contrast: there is nothing to collapse"
        return Sign("healthy", because, "nothing")
    said = []
    if latent is not None:
        said.append(f"{latent['active_units']['active']} of {latent['active_units']['of']} units are active")
        said.append(f"a latent knows {latent['information']['sampled']:.2f} nats of its history")
        said.append(f"other histories' latents keep {latent['decoder']['kept']:.0%} of ndcg@20")
    if contrast is not None and contrast["negatives"] is not None:
        said.append(f"1 - p+ is {contrast['negatives']['one_minus_p']:.2f}")
        said.append(f"ESS/M {contrast['negatives']['ess']:.2f}")
    return Sign("healthy", ", ".join(said), "nothing")
