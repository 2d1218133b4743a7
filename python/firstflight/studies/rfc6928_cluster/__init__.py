"""RFC 6928's own experiment on two simulated data centres: IW 3 against 10 on millions of users' paths."""

from .study import Cluster

STUDY = Cluster()
