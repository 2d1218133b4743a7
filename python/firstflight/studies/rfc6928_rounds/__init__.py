"""RFC 6928 section 5.1: round trips by transfer size, with initial windows of 3 and 10 segments."""

from .study import Rounds

STUDY = Rounds()
