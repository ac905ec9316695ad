"""Histograms as histogram.rs prints them, [[step, count], …]: merged, and read. 64 steps to each power of two, µs."""

STEPS = 64


def bucket(us):
    """The step of a value."""
    power = max((us | STEPS).bit_length() - 7, 0)
    return power * STEPS + (us >> power)


def upper_edge(step):
    """The largest value of a step, µs."""
    if step < 2 * STEPS:
        return step
    power = step // STEPS - 1
    return (step - power * STEPS + 1 << power) - 1


def merged(*histograms):
    counts = {}
    for histogram in histograms:
        for step, count in histogram:
            counts[step] = counts.get(step, 0) + count
    return sorted(map(list, counts.items()))


def percentile_ms(histogram, share, max_us):
    """Milliseconds that this share of the values does not exceed, known to 1.6 %; 0 where there is none."""
    total = sum(count for _, count in histogram)
    # Rounded first: 0.9999 of 10,000 are 9,999, whatever the processor makes of it.
    wanted, seen = max(-int(-round(total * share, 6) // 1), 1), 0
    for step, count in histogram:
        seen += count
        if seen >= wanted:
            return min(upper_edge(step), max_us) / 1e3
    return 0.0


def rank_ms(values_us, share):
    """The same of a few values as they are (nearest rank); 0 where there is none."""
    ordered = sorted(values_us)
    return ordered[max(-int(-round(len(ordered) * share, 6) // 1), 1) - 1] / 1e3 if ordered else 0.0
