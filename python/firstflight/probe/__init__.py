"""Measures the initial window of a server, with one connection after the other that acknowledges nothing.

The method is that of TBIT (Padhye and Floyd, SIGCOMM 2001, section 4.1) and of the surveys over TLS (Rüth, Bormann and
Hohlfeld, PAM 2017; Rüth and Hohlfeld, TMA 2018): a small segment size, a large window, no ACK of anything the server
sends, until it repeats itself. Here the TLS handshake and the request go out without acknowledging either, so that the
server's window has not grown when the response comes. A connection that acknowledges all comes first.
"""

from firstflight.probe.hosts import Answer, probe
from firstflight.probe.judge import Verdict, Window
from firstflight.probe.measure import Flight

__all__ = ["Answer", "Flight", "Verdict", "Window", "probe"]
