"""`make chaos`: a cluster in network namespaces, real clients that write histories, a nemesis, and the judge."""
