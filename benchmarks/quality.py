"""What runs reached on their test cases, a row a number: `python benchmarks/quality.py RUN ...`"""

import json
import sys
from datetime import date
from pathlib import Path

from twoview.data.catalogue import entries
from twoview.train.folder import folders
from twoview.train.run import evaluation

RESULTS = Path(__file__).parent / "results" / "quality.json"
SHOWN = ("recall@20", "ndcg@20", "recall@40", "ndcg@40")
REACH = {  # of issue and design: set, model -> metric -> at least
    ("beauty", "contrastvae"): {"recall@20": 0.140, "ndcg@20": 0.070},
    ("toys", "contrastvae"): {"recall@20": 0.144, "ndcg@20": 0.075},
    ("tools", "contrastvae"): {"recall@20": 0.084, "ndcg@20": 0.041},
    ("office", "contrastvae"): {"recall@20": 0.177, "ndcg@20": 0.083},
    ("beauty", "sasrec"): {"recall@20": 0.140, "ndcg@20": 0.070},
    ("beauty", "item_knn"): {"recall@20": 0.0975, "ndcg@20": 0.0552},
    ("toys", "item_knn"): {"recall@20": 0.1142, "ndcg@20": 0.0665},
    ("tools", "item_knn"): {"recall@20": 0.0615, "ndcg@20": 0.0341},
    ("office", "item_knn"): {"recall@20": 0.1125, "ndcg@20": 0.0621},
}


def rows(path: Path, sets: dict[str | None, str]) -> list[dict[str, object]]:
    """One run's numbers."""
    found = []
    for folder in folders(path):
        card, metrics = folder.card(), evaluation(folder)["metrics"]
        data = sets.get(card["data"]["source_md5"], "other")
        reach = REACH.get((data, card["model"]), {}) if card["recipe"] == "best" else {}
        machine = ", ".join(f"{key} {value}" for key, value in card["machine"].items())
        command = f"twoview train {card['model']} {data} --recipe {card['recipe']} --seed {card['seed']}"
        for metric in SHOWN:
            name = f"{data} {card['model']} {card['recipe']} seed {card['seed']} {metric}"
            found.append({
                "row": name, "value": round(metrics[metric], 5), "unit": metric.partition("@")[0],
                "reach": f">= {reach[metric]}" if metric in reach else None, "machine": machine,
                "versions": card["versions"], "command": command, "date": str(date.today()),
                "seconds": round(card["seconds"], 1), "epochs": card["epochs"],
            })  # fmt: skip
    return found


def main() -> None:
    """Adds the runs to the file; a run that is there already is replaced."""
    sets = {entry.files[0].md5: name for name, entry in entries().items() if entry.files[0].md5}
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    kept = {row["row"]: row for row in before}
    for path in map(Path, sys.argv[1:]):
        kept |= {row["row"]: row for row in rows(path, sets)}
    RESULTS.write_text(json.dumps([kept[name] for name in sorted(kept)], indent=1) + "\n")


if __name__ == "__main__":
    main()
