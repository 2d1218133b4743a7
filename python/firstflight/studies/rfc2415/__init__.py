"""RFC 2415 (Poduri and Nichols, 1998): simulation studies of increased initial TCP window size."""

from firstflight.studies.rfc2415.study import Rfc2415

STUDY = Rfc2415()

__all__ = ["STUDY", "Rfc2415"]
