"""The report of a run: one self-contained HTML file, and its figures as files."""

from firstflight.report.figure import Figure
from firstflight.report.page import figures_to_files, write

__all__ = ["Figure", "figures_to_files", "write"]
