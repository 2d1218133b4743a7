"""RFC 6928's own experiment on two simulated data centres: IW 3 against 10 on millions of users' paths."""

from firstflight.studies.rfc6928_cluster.study import Cluster

STUDY = Cluster()
