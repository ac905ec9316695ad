"""A real text: what this repository says of itself, its documents and the comments of its programs, as plain printable words.

Nothing but ASCII is left of it, so that `wc`, Java and Python agree on what a word is: what stands between white space.
"""

import subprocess

from compat import fetch

LEFT_OUT = {"target", ".cache", ".git", "node_modules", "__pycache__"}


def documents(root):
    """Every line of every .md file, and the comments of every .rs file."""
    for path in sorted(root.rglob("*")):
        if LEFT_OUT & set(path.relative_to(root).parts) or not path.is_file():
            continue
        if path.suffix == ".md":
            yield from path.read_text(errors="replace").splitlines()
        elif path.suffix == ".rs":
            for line in path.read_text(errors="replace").splitlines():
                line = line.strip()
                if line.startswith("//"):
                    yield line.lstrip("/!").strip()


def make(path, words):
    """Writes about so many words in lines; (lines, words) as wc counts them."""
    count = lines = 0
    with open(path, "w") as out:
        for line in documents(fetch.REPOSITORY):
            found = "".join(letter if " " < letter <= "~" else " " for letter in line).split()
            if found:
                out.write(" ".join(found) + "\n")
                count, lines = count + len(found), lines + 1
            if count >= words:
                break
    said = subprocess.run(["wc", "-l", "-w", str(path)], capture_output=True, text=True, check=True).stdout.split()
    if (int(said[0]), int(said[1])) != (lines, count):
        raise RuntimeError(f"wc counts {said[:2]} in {path}, not {lines} lines and {count} words")
    return lines, count


def counts(path):
    """{word: how often}, by sort and uniq."""
    said = subprocess.run(f"tr -s '[:space:]' '\\n' < '{path}' | sort | uniq -c", shell=True, capture_output=True, text=True, check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout
    return {word: int(count) for count, word in (line.split() for line in said.splitlines())}
