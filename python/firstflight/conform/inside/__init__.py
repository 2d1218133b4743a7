"""The part within the namespaces: the kernel's end of each connection, and the scripted other end's packets."""
