"""The explorer: one page for a browser, with the simulator in it."""
