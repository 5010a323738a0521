"""A diagnosis for a terminal: the verdict first, then short tables of what it rests on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table


def drawn(found: Mapping[str, Any]) -> Iterator[Table | str]:
    """A diagnosis line by line and table by table."""
    yield f"{found['run']} ({found['model']})"
    for sign in found["verdict"]:
        yield f"{sign['state'].upper()}: {sign['because']}"
        if sign["try"] != "nothing":
            yield f"    try {sign['try']}"
    looked = found["states"]
    yield f"looked at {looked['cases']:,} {looked['split']} cases of {looked['users']:,} users"
    if looked["dropped_events"]:
        yield f"left out {looked['dropped_events']:,} events of items that the run does not know"
    if found["latent"] is not None:
        yield pairs("latent", latent(found["latent"]))
        yield from (by(name, rows) for name, rows in found["latent"]["groups"].items())
    if found["contrast"] is not None:
        yield pairs("contrast", contrast(found["contrast"]))
    if looked["histories"] is not None:
        yield spreads(looked)
    if found["terms"]:
        yield terms(found["terms"])


def pairs(title: str, rows: Mapping[str, str]) -> Table:
    """Names beside numbers."""
    table = Table(title, "", box=None, pad_edge=False)
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def latent(found: Mapping[str, Any]) -> dict[str, str]:
    """The numbers of a latent."""
    kl, units, known, decoder = (found[name] for name in ("kl", "active_units", "information", "decoder"))
    apart = "  ".join(f"{row['mmd']:.3f} ({row['of_the_prior']:.3f})" for row in found["prior"])
    widths = ", ".join(f"{row['sigma']:g}" for row in found["prior"])
    asked = {name: decoder[name]["ndcg@20"] for name in ("as_is", "shuffled", "zeroed")}
    estimates = "  ".join(f"{name} {known[name]:.3f}" for name in ("entropy", "dieng", "sampled"))
    return {
        "KL, nats": f"{kl['total']:.3f} a place, {kl['newest']:.3f} at the newest",
        "largest dimensions": "  ".join(f"{nats:.3f}" for nats in sorted(kl["per_dimension"])[:-6:-1]),
        "from the newest back": "  ".join(f"{nats:.3f}" for nats in kl["per_position"][:5]),
        "active units": f"{units['active']} of {units['of']}",
        "information, nats": f"{estimates}  (ceiling {known['ceiling']:.2f})",
        "all latents from the prior": f"KL {known['aggregate_kl']:.3f}",
        f"MMD at {widths}": f"{apart}  (of the prior itself)",
        "ndcg@20": "  ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in asked.items()),
    }


def contrast(found: Mapping[str, Any]) -> dict[str, str]:
    """The numbers of a contrast."""
    shares = found["false_negatives"].items()
    rows = {
        "pairs": f"{found['pairs']:,}, {found['in_a_step']} in a step",
        "alignment": f"{found['alignment']:.4f}",
        "uniformity": f"{found['uniformity']:.4f}",
        "effective rank": f"{found['effective_rank']:.1f} of {found['dim']}",
        "false negatives": "  ".join(f"{name.replace('_', ' ')} {share:.2%}" for name, share in shares),
    }
    met = found["negatives"]
    if met is None:
        return rows
    return rows | {
        "ESS/M": f"{met['ess']:.3f}, {met['effective']:.1f} of {met['each']:.0f} negatives",
        "1 - p+": f"{met['one_minus_p']:.3f}"
        + ("" if met["fades"] else ", the gradient does not fade by it"),
        "log K": f"{max(met['saturation'], 0):.1%} of {met['log_k']:.2f} nats used",
    }


def by(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Deviation, variance and KL by group."""
    table = Table(name, "histories", "sigma", "variance", "KL", box=None, pad_edge=False)
    for row in rows:
        values = (f"{row[column]:.4f}" for column in ("sigma", "variance", "kl"))
        table.add_row(row["group"], f"{row['histories']:,}", *values)
    return table


def spreads(looked: Mapping[str, Any]) -> Table:
    """Rank and uniformity of states and items."""
    table = Table("rows", "", "effective rank", "uniformity", box=None, pad_edge=False)
    for name in ("histories", "items"):
        row = looked[name]
        rank = f"{row['effective_rank']:.1f} of {row['dim']}"
        table.add_row(name, f"{row['rows']:,}", rank, f"{row['uniformity']:.4f}")
    return table


def terms(found: Mapping[str, Mapping[str, float]]) -> Table:
    """Each term of the loss and its pull."""
    table = Table("term", "weighted value", "share of the gradient", box=None, pad_edge=False)
    for name, row in found.items():
        table.add_row(name, f"{row['value']:.5f}", f"{row['gradient_share']:.1%}")
    return table
