"""From a plan and a split to a finished run folder, written as it goes, resumed to the same weights.

plan + log -> split -> model, rows -> epochs -> selected weights -> ranks -> folder
"""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..data.log import Log
from ..data.rows import Rows
from ..data.split import Cases, Split
from ..error import RecipeError, RunError
from ..evaluate.metrics import metrics
from ..evaluate.protocol import card as protocol_card
from ..evaluate.ranks import SEEN, Questions, cases_table, ranks
from ..models.base import Facts, Model
from ..types import Recommender
from .example import examples
from .fit import Fit, Progress, Validate
from .folder import CARD, EXAMPLES, RECIPE, STATE, WEIGHTS, Folder
from .machine import machine, threads, versions
from .memory import remembered
from .plan import SELECTED_BY, Plan, device_of, plan_before
from .told import Teller

TOLD = ("recall@20", "ndcg@20", "recall@40", "ndcg@40", "mrr")  # of each validation, in the story


class Making:
    """One run on its way."""

    def __init__(self, plan: Plan, parts: Split, path: Path) -> None:
        self.plan, self.parts, self.folder = plan, parts, Folder(path)
        self.device = device_of(plan.how.device)
        self.facts = Facts.of(parts.train, plan.recipe.rows.max_len)
        self.model = built(plan, self.facts).to(self.device)
        self.told: dict[str, float] = {}  # the last validation
        start = plan.recipe.start_from
        recipe_first = start is not None and not Folder(Path(start)).has(CARD)
        self.before = Making(plan_before(plan), parts, path / "before") if recipe_first else None

    def begin(self, log: Log, data: Path | None, *, threads: int) -> None:
        """The folder with all that is known before training."""
        self.folder.path.mkdir(parents=True, exist_ok=True)
        self.folder.write_text(RECIPE, self.plan.recipe.to_toml())
        self.folder.write_lines("items.txt", log.item_ids)
        if log.titles is not None:
            self.folder.write_lines("titles.txt", log.titles)
        source = {"folder": str(data.resolve()) if data else None, "md5": log.arrays_md5}
        known = {
            "finished": False,
            **self.plan.card(),
            "facts": asdict(self.facts),
            "data": source | {"source_md5": log.source_md5},
            "versions": versions(),
            "machine": machine(self.device) | {"threads": threads},
            "seconds": 0.0,
        }
        self.folder.write_card(known)

    def finish(self, teller: Teller) -> None:
        """Does whatever is still to do: trains from where the folder is, measures once, adds a memory."""
        card = self.folder.card()
        with threads(card["machine"]["threads"]):
            if not card["finished"]:
                self._train(teller)
            if not self.folder.finished:
                self._remember()

    def _train(self, teller: Teller) -> None:
        started = time.perf_counter()
        self._start(teller)
        fit = self._fit()
        started -= self._restored(fit)
        saved = time.monotonic()
        for record in fit.epochs(teller.step):
            self.folder.add_to_story(record | self.told)
            teller.epoch(record)
            if time.monotonic() - saved >= self.plan.how.state_every:
                self._save_state(fit, time.perf_counter() - started)
                saved = time.monotonic()
        self.model.load_state_dict(fit.selected)
        self.model.eval()
        self.folder.write_tensors(WEIGHTS, self.model.state_dict())
        cards = self._measured()
        if len(self.parts.valid):
            told = examples(self.model, self.parts.valid, self._questions)
            self.folder.write_text(EXAMPLES, json.dumps(told, indent=1, ensure_ascii=False) + "\n")
        done = {
            "finished": True,
            "seconds": time.perf_counter() - started,
            "epochs": fit.progress.epoch,
            "best_epoch": fit.progress.best_epoch,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "protocol": cards,
        }
        self.folder.write_card(self.folder.card() | done)
        (self.folder.path / STATE).unlink(missing_ok=True)

    def _remember(self) -> None:
        self.model.load_state_dict(self.folder.tensors(WEIGHTS)[0])
        found = remembered(self.folder, self.model.eval(), self.parts, self._questions)
        self.folder.write_card(self.folder.card() | {"memory": found})

    def _start(self, teller: Teller) -> None:
        """Another run's weights, or those of a recipe trained first, where the recipe starts there."""
        start = self.plan.recipe.start_from
        if start is None:
            return
        folder = self.before.done(self.parts.valid.log, teller) if self.before else Folder(Path(start))
        own, weights = self.model.state_dict(), folder.tensors(WEIGHTS)[0]
        fitting = {k: tensor for k, tensor in weights.items() if k in own and own[k].shape == tensor.shape}
        if not fitting:
            raise RunError(f"{self.plan.file.name} wants to start from {start}, but no weight of it fits")
        self.model.load_state_dict(fitting, strict=False)

    def done(self, log: Log, teller: Teller) -> Folder:
        """The folder, after whatever was still to do."""
        if not self.folder.has(CARD):
            self.begin(log, None, threads=torch.get_num_threads())
        if not self.folder.finished:
            self.finish(teller)
        return self.folder

    def _fit(self) -> Fit:
        """A training at its very beginning, all its randomness seeded."""
        recipe, train = self.plan.recipe, self.parts.train
        torch.manual_seed(self.plan.seed)
        order = torch.Generator().manual_seed(self.plan.seed)
        rows = Rows(train, recipe.rows, generator=order, device=self.device, room=self.model.room)
        validate = self._validation(self.parts.valid) if len(self.parts.valid) else None
        return Fit(self.model, rows, train, recipe.fit, validate)

    def _validation(self, cases: Cases) -> Validate:
        questions, table = self._questions(cases), cases_table(cases, self.parts.train)

        def validate(model: Recommender) -> float:
            found = metrics(ranks(model, questions), table)
            self.told = {name: found[name] for name in TOLD}
            return found[SELECTED_BY]

        return validate

    def _questions(self, cases: Cases) -> Questions:
        max_len, seen = self.plan.recipe.rows.max_len, SEEN[self.plan.how.seen]
        return Questions(cases, max_len=max_len, room=self.model.room, seen=seen, device=self.device)

    def _measured(self) -> dict[str, Any]:
        """Ranks under the selected weights, written: test for the only time; their cards."""
        cards = {}
        for name, cases in self.parts.held.items():
            self.folder.write_array(f"ranks_{name}.npy", ranks(self.model, self._questions(cases)))
            self.folder.write_array(f"cases_{name}.npy", cases_table(cases, self.parts.train))
            card = protocol_card(self.parts, name, seen=self.plan.how.seen, seeds=[self.plan.seed])
            cards[name] = asdict(card)
        return cards

    def _save_state(self, fit: Fit, seconds: float) -> None:
        notes = {name: repr(value) for name, value in asdict(fit.progress).items()}
        self.folder.write_tensors(STATE, fit.state(), notes | {"seconds": repr(seconds)})

    def _restored(self, fit: Fit) -> float:
        """Puts a training where its saved state was: the seconds it took. Without a state it starts over."""
        if not self.folder.has(STATE):
            self.folder.cut_story(0)
            return 0.0
        state, notes = self.folder.tensors(STATE)
        seconds, best = float(notes.pop("seconds")), float(notes.pop("best"))
        counters = {name: int(value) for name, value in notes.items()}
        fit.restore(state, Progress(**counters, best=best))
        self.folder.cut_story(fit.progress.epoch)
        return seconds


def built(plan: Plan, facts: Facts) -> Model:
    """The model of a plan on the CPU, its first weights drawn from the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        try:
            return plan.file.model(plan.recipe.model, facts)
        except ValueError as error:
            raise RecipeError(f"{plan.file.name} cannot be built: {error}") from error


def own_log(folder: Folder, given: Path | None) -> Log:
    """The very log that a run was trained on."""
    card = folder.card()
    log = Log.open(data_folder(card, given))
    if log.arrays_md5 != card["data"]["md5"]:
        raise RunError(f"{folder.path} was trained on data {card['data']['md5']}; {log.arrays_md5} came")
    return log


def data_folder(card: dict[str, Any], given: Path | None) -> Path:
    """Where the data of a run lies: where it is said to, or where the card says."""
    folder = given or card["data"]["folder"]
    if folder is None:
        raise RunError("the run was trained on a log in memory; name a prepared folder with --data")
    return Path(folder)
