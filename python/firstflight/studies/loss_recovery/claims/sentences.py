"""What the claims share."""

COMPARISON = "The sentence compares and gives no number, so any difference in its direction will do."
RULE = "A rule without exceptions, so the tolerance is 0."
FEW, MANY = 3, 10
"""Initial windows of RFC 3390 and RFC 6928 at an MSS of 1460 bytes, segments."""
