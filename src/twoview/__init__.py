"""The public names, sorted, nothing else; each is loaded when it is first asked for."""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from .config import Part
    from .data.log import Log
    from .error import TwoviewError
    from .models.base import Claims, Facts, Model, Phase, SequenceModel
    from .train.recommend import Counter
    from .train.run import Run
    from .types import Batch, History, Objective, Recommender, Terms

__all__ = [
    "Batch",
    "Claims",
    "Counter",
    "Facts",
    "History",
    "Log",
    "Model",
    "Objective",
    "Part",
    "Phase",
    "Recommender",
    "Run",
    "SequenceModel",
    "Terms",
    "TwoviewError",
]

_ROOMS = {
    "config": ["Part"],
    "data.log": ["Log"],
    "error": ["TwoviewError"],
    "models.base": ["Claims", "Facts", "Model", "Phase", "SequenceModel"],
    "train.recommend": ["Counter"],
    "train.run": ["Run"],
    "types": ["Batch", "History", "Objective", "Recommender", "Terms"],
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> _typing.Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"twoview has no {name}; it has {', '.join(__all__)}")
    return getattr(_importlib.import_module(f".{_ROOM_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
