"""Whether the intervals of `analysis.ab` cover what they promise: `python -m research.calibration`."""
