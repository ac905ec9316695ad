"""A flame graph out of what `perf script` says: who calls whom, as wide as its share of the samples. One SVG that needs nothing else.

Widths are samples; the bottom row are threads, those of a kind together. Orange: the kernel. Green: Barnabas. Grey: libraries and the runtime. A
frame's full name and share are its tooltip. Left out: how a thread and its runtime are started, which is below everything.
"""

import re
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LETTER, MARGIN = 1200, 17, 6.6, 10
BYTES_MAX = 290_000
KERNEL_FROM = 1 << 63


def folded(told, shortened):
    """{(thread, outermost, …, innermost): samples}"""
    found = {}
    for block in re.split(r"\n\s*\n", told):
        lines = block.strip("\n").splitlines()
        if len(lines) < 2:
            continue
        frames = []
        for line in lines[1:]:
            address, _, name = line.strip().partition(" ")
            name = "?" if name.strip() in ("", "[unknown]") else shortened(re.sub(r"\+0x[0-9a-f]+$", "", name.strip()))
            is_kernel = re.fullmatch(r"[0-9a-f]+", address) and int(address, 16) >= KERNEL_FROM
            frames.append(f"kernel: {name}" if is_kernel else name)
        frames.reverse()
        # From the first function of ours on.
        begun = next((place for place, name in enumerate(frames) if name.startswith("barnabas")), 0)
        stack = (re.sub(r"-\d+$", "", lines[0].strip()), *frames[begun:])
        found[stack] = found.get(stack, 0) + 1
    return found


def label_of(name):
    """What fits into a box: the colour tells the kernel, the last two words the function."""
    return "::".join([word for word in name.removeprefix("kernel: ").replace("{{closure}}", "{}").split("::") if word][-2:])


class Frame:
    def __init__(self):
        self.samples, self.children = 0, {}

    def add(self, stack, samples):
        self.samples += samples
        if stack:
            self.children.setdefault(stack[0], Frame()).add(stack[1:], samples)


def tree(stacks):
    root = Frame()
    for stack, samples in stacks.items():
        root.add(stack, samples)
    return root


def boxes(frame, left, depth, unit, narrowest):
    """[(left, depth, width, name, samples)] of all that are wide enough."""
    found = []
    for name, child in sorted(frame.children.items()):
        width = child.samples * unit
        if width >= narrowest:
            found.append((left, depth, width, name, child.samples))
            found += boxes(child, left, depth + 1, unit, narrowest)
        left += width
    return found


def colour(name, depth):
    if name.startswith("kernel: "):
        return "#f4a259"
    if "barnabas" in name:
        return "#7fc8a9"
    return "#b8c4d6" if depth == 0 else "#d9d9d9"


def drawn(stacks, title, samples_of_a_core):
    """The SVG; the narrowest frames are left out until it is small enough."""
    root, narrowest = tree(stacks), 0.4
    while True:
        text = svg(root, title, samples_of_a_core, narrowest)
        if len(text.encode()) <= BYTES_MAX:
            return text
        narrowest *= 1.4


def svg(root, title, samples_of_a_core, narrowest):
    found = boxes(root, MARGIN, 0, (WIDTH - 2 * MARGIN) / max(root.samples, 1), narrowest)
    height = (max((depth for _, depth, *_ in found), default=0) + 1) * HEIGHT + 60
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="DejaVu Sans Mono, monospace" font-size="11">',
             f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
             f'<text x="{MARGIN}" y="22" font-family="DejaVu Sans, sans-serif" font-size="15" font-weight="bold">{escape(title)}</text>',
             f'<text x="{MARGIN}" y="40" font-family="DejaVu Sans, sans-serif">{root.samples:,} samples, {root.samples / samples_of_a_core:.2f} cores. Width: share of the server\'s CPU. '
             'Orange: kernel; green: Barnabas; grey: libraries, runtime; bottom: threads.</text>']
    for left, depth, width, name, samples in found:
        top = height - 10 - (depth + 1) * HEIGHT
        letters = int((width - 4) / LETTER)
        label = label_of(name)
        label = label if len(label) <= letters else label[:letters - 1] + "…" if letters > 2 else ""
        lines.append(f'<g><title>{escape(name)}: {samples / root.samples:.1%}</title><rect x="{left:.1f}" y="{top}" width="{max(width - 0.5, 0.3):.1f}" height="{HEIGHT - 1}" '
                     f'fill="{colour(name, depth)}"/>' + (f'<text x="{left + 3:.1f}" y="{top + 12}">{escape(label)}</text>' if label else "") + "</g>")
    return "\n".join([*lines, "</svg>", ""])
