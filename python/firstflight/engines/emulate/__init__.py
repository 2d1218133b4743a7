"""Real programs and the real kernel in network namespaces, in real time.

Nothing heavy is imported here: the processes inside a testbed pass through on the way to `inside`.
"""
