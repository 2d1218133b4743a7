"""Whether the intervals keep what they promise, on samples whose truth is known."""
