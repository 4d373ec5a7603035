"""DP-FTS-DE with server and agents as processes that talk over Flower (extra ``federated``).

``python -m private_bo.federated.flower`` starts everything on one machine, and
:func:`private_bo.federated.flower.run.over_flower` is the same from Python. Each agent is a
SuperNode, which keeps the agent's objective and memory; the server is a ServerApp, which keeps the
ledger. Only broadcasts and reports travel, as exact float64 bytes, so that a run over processes is
the run in one process, bit for bit.

It is a demonstration on the loopback interface: without TLS, nodes are not authenticated. In a
deployment give Flower certificates and SuperNode authentication, and draw the noise without a seed.
"""
