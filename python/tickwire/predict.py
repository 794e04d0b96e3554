"""Tools that hide latency: a common clock, inputs, prediction, corrections, and lag compensation for hits.

:class:`Prediction` runs the player's own ghost ahead of the server. :class:`Past` is the world as a player
saw it. Functions such as :func:`smoothed` and :func:`decayed` move a drawn thing to its corrected place.
They take numbers or NumPy arrays. See ``docs/prediction.md`` and ``docs/hits.md``.
"""

from tickwire._core import Clock, InputColumns, Inputs, InputStatus, Latency
from tickwire._corrections import cubic, decayed, instant, projective, smoothed
from tickwire._past import Judgement, Judgements, Past
from tickwire._prediction import Predicted, Prediction

__all__ = [
    "Clock",
    "InputColumns",
    "InputStatus",
    "Inputs",
    "Judgement",
    "Judgements",
    "Latency",
    "Past",
    "Predicted",
    "Prediction",
    "cubic",
    "decayed",
    "instant",
    "projective",
    "smoothed",
]
