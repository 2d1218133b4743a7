"""The simulator against the kernel that runs here: one transfer, many conditions, both engines side by side."""

from firstflight.studies.kernel_check.study import KernelCheck

STUDY = KernelCheck()
