"""Links of the documentation's pages: the file is there, and so is the heading."""

import re

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page):
    """What GitHub and mdBook make of the page's headings."""
    found = set()
    fenced = False
    for line in page.read_text().splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(words.replace(" ", "-"))
    return found


def broken(pages):
    """(links looked at, those that lead nowhere) of these pages."""
    count, wrong = 0, []
    for page in pages:
        for link in LINK.findall(re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(), flags=re.DOTALL)):
            if link.startswith(("http:", "https:")):
                continue
            count += 1
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                wrong.append(f"{page.name}: {link}")
    return count, wrong
