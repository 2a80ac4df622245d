"""The shared library exports what tests/tidy/symbols.txt lists, which is what the public headers declare, and nothing else.

symbols.py LIBRARY; symbols.py LIBRARY --write makes the list anew from the headers."""
import pathlib
import re
import subprocess
import sys

LIST = pathlib.Path("tests/tidy/symbols.txt")


def declared():
    names = set()
    for header in pathlib.Path("include/pawl").glob("*.h"):
        text = re.sub(r"/\*.*?\*/|^#.*?$", "", header.read_text(), flags=re.S | re.M)
        for statement in re.findall(r"PAWL_API\b([^;]*);", text):
            name = re.search(r"\b(pawl_\w+)\s*\(", statement)
            if not name:
                sys.exit(f"{header}: no name in: PAWL_API{statement}")
            names.add(name.group(1))
    return names


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


def main():
    if "--write" in sys.argv:
        LIST.write_text("".join(f"{name}\n" for name in sorted(declared())))
    listed = set(LIST.read_text().split())
    found = exported(sys.argv[1])
    faults = []
    faults += [f"exported and not listed: {name}" for name in sorted(found - listed)]
    faults += [f"listed and not exported: {name}" for name in sorted(listed - found)]
    faults += [f"declared in a public header and not listed: {name}" for name in sorted(declared() - listed)]
    faults += [f"listed and in no public header: {name}" for name in sorted(listed - declared())]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(listed)} symbols")


main()
