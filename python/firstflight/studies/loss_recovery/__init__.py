"""RFC 6928 section 5.3: how a loss in the first flight is repaired, by initial window, and what that costs."""

from .study import LossRecovery

STUDY = LossRecovery()
