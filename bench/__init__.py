"""Measurements of cost and accuracy: `python -m bench` from the checkout."""
