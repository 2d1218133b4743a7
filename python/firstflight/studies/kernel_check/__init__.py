"""The simulator against the kernel that runs here: one transfer, many conditions, both engines side by side."""

from .study import KernelCheck

STUDY = KernelCheck()
