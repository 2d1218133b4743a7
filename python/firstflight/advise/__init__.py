"""Recommends an initial window from observed connections: gain by user group, cost, confidence.

    firstflight advise flows.csv --iw 10,16,20,32

reads observed flows (`firstflight.observe`), uses them as the population (`fit`), makes sensitivity cases of
the values that they lack (`sensitivity`), simulates each window on the same users (`experiment`), compares (`measure`),
checks the harm budget (`budget`), decides (`decide`) and writes a page (`page`).
"""

from firstflight.advise.advice import Advice
from firstflight.advise.budget import DEFAULT as DEFAULT_HARM
from firstflight.advise.request import Options
from firstflight.advise.run import advise
from firstflight.advise.words import sentences

__all__ = ["DEFAULT_HARM", "Advice", "Options", "advise", "sentences"]
