"""Every error a user can cause, as one tree: a line that says what was wanted, what came, what exists.

TwoviewError           printed as one line by the command line, exit 2
├── DataError          a file, a column, a log that cannot be what it should be
├── RecipeError        a recipe, a key, a model or an objective that does not exist
├── RunError           a folder that is no run, or is half a one
├── ProtocolError      two ways of counting that must not meet, a split with nothing in it
├── ScoreError         a score that is not a number: never ranked
├── TrainingError      a loss that is not a number
└── Interrupted        somebody stopped a run whose folder is kept: exit 130
"""


class TwoviewError(Exception):
    """Something the user can mend; its text is the whole message."""


class DataError(TwoviewError):
    """A file, a column or a log that is not what was wanted."""


class RecipeError(TwoviewError):
    """A recipe, a key or a name that does not exist."""


class RunError(TwoviewError):
    """A folder that is not a whole run."""


class ProtocolError(TwoviewError):
    """Two protocols where one was wanted, or a split that leaves nothing to measure."""


class ScoreError(TwoviewError):
    """A score that is not finite."""


class TrainingError(TwoviewError):
    """A loss that is not finite."""


class Interrupted(TwoviewError):  # noqa: N818
    """Somebody stopped a run whose folder is kept."""
