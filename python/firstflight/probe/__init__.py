"""Measures the initial window of a server, by connections that acknowledge no data.

The method is that of TBIT (Padhye and Floyd, SIGCOMM 2001, section 4.1) and of the surveys over TLS (Rüth, Bormann and
Hohlfeld, PAM 2017; Rüth and Hohlfeld, TMA 2018): a small MSS, a large rwnd, and no ACK of data until the server
retransmits. The TLS handshake and the request are sent without ACKs too, so cwnd has not grown when the response
arrives. The first connection acknowledges everything.
"""

from firstflight.probe.hosts import Answer, probe
from firstflight.probe.judge import Verdict, Window
from firstflight.probe.measure import Flight

__all__ = ["Answer", "Flight", "Verdict", "Window", "probe"]
