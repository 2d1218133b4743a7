"""The part inside a testbed's namespaces. It starts in a few tenths of a second, so it imports nothing heavy."""
