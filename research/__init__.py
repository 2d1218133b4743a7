"""Fits and searches that produced a number in the product or its pages."""
