"""Every link between pages leads somewhere, also to its heading, and every page of docs/ is linked to. links.py"""
import pathlib
import re
import sys


def pages():
    skip = {"build", "demo", ".git", "golden", "corpus"}
    return [p for p in sorted(pathlib.Path().rglob("*.md")) if not any(part in skip or part.startswith(".") for part in p.parts[:-1])]


def anchors(text):
    """The names that GitHub gives to headings."""
    heads = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def main():
    faults, linked = [], {pathlib.Path("docs/README.md")}  # the index
    found = pages()
    for page in found:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
        for path, anchor in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)", text):
            target = page.parent / path if path else page
            if not target.exists():
                faults.append(f"{page}: {path} is not there")
            elif anchor and anchor not in anchors(target.read_text()):
                faults.append(f"{page}: {path}#{anchor}: no such heading")
            if path:
                linked.add(pathlib.Path(*target.resolve().relative_to(pathlib.Path().resolve()).parts))
    faults += [f"{page}: no page links to it" for page in found if page.parts[0] == "docs" and page not in linked]
    if len(found) < 15:
        faults.append(f"only {len(found)} pages were found")
    print(f"{len(found)} pages")
    sys.exit("\n".join(faults) if faults else 0)


main()
