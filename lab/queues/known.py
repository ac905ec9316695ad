"""Differences from Artemis that are meant: (scenario, client or *) → what we say, and why. docs/QUEUES.md tells users."""

KNOWN = {
    ("release", "*"): ("again, and counted 1", "a share group counts every delivery, released ones too"),
}
