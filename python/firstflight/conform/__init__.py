"""The running kernel as the oracle: random connections of it, recorded as packet scripts and run through a profile."""
