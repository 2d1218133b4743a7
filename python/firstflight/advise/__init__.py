"""What another initial window would do to an operator's own users: for whom it gains, at what cost to whom, how surely.

    firstflight advise flows.csv --iw 10,16,20,32

reads observed flows (`firstflight.observe`), takes them as the population they are (`fit`), brackets what they do not
tell (`brackets`), simulates each window on the same users (`experiment`), compares (`measure`), holds the result
against a harm budget (`budget`), decides (`decide`) and writes a page (`page`).
"""

from firstflight.advise.advice import Advice
from firstflight.advise.budget import DEFAULT as DEFAULT_HARM
from firstflight.advise.run import advise
from firstflight.advise.words import sentences

__all__ = ["DEFAULT_HARM", "Advice", "advise", "sentences"]
