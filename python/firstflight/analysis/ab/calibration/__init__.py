"""Whether the intervals have their nominal coverage, on samples whose truth is known."""
