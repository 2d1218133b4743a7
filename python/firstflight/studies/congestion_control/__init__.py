"""Thalheim's recap of congestion control: one HTTP download over 10 Mbit/s, and who gets what beside it."""

from .study import CongestionControl

STUDY = CongestionControl()
