"""The first flights of one transfer with several initial windows: rounds in words, and a page with ladder diagrams."""
