"""Client metrics (KIP-714): real clients push, the node shows what they pushed."""
