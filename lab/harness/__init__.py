"""Starts, stops, kills and questions nodes, ours and Apache Kafka's: what the rigs in Python share. The Rust rigs have the same in `src/`.

    ports    which port is free, and stays free until the node listens on it
    process  one node's process: run, ready, killed, stopped, paused; its log; programs that end with the rig
    server   one combined node: its settings, its directory formatted; Barnabas and Apache Kafka
    cluster  several nodes: one quorum, formatted together, started together
    ask      a few requests as bytes: does a node answer Metadata, who leads the quorum
    usage    what processes use: CPU, memory, bytes written

A rig keeps what is its own: the settings of its nodes, what it waits for, what counts as wrong. `lab/harness/python` runs a rig with this package on
the path.
"""
