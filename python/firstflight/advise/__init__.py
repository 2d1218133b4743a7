"""Recommends an initial window from observed connections: gain by user group, cost, confidence."""

from firstflight.advise.advice import Advice
from firstflight.advise.budget import DEFAULT as DEFAULT_HARM
from firstflight.advise.request import Options
from firstflight.advise.run import advise
from firstflight.advise.words import sentences

__all__ = ["DEFAULT_HARM", "Advice", "Options", "advise", "sentences"]
