"""Nothing in the tree speaks of one machine, or marks unfinished work."""
import pathlib
import re
import subprocess
import sys

MACHINE = re.compile(r"(?<![\w%.])/(work|root|home/[a-z]+)/|\.\./shared|\bshared/(spec|golden)")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|\b([Nn]ot implemented|[Uu]nimplemented|[Pp]laceholder)\b")


def main():
    names = subprocess.run(["git", "ls-files", "-z"], stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    faults = []
    for name in names:
        path = pathlib.Path(name)
        if not name or name == "tests/tidy/words.py" or not path.is_file() or path.stat().st_size > 1 << 20:
            continue
        if name.startswith(("tests/golden/", "tests/fuzz/corpus/")):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE.search(line):
                faults.append(f"{name}:{number}: a path of one machine: {line.strip()[:100]}")
            if name.startswith(("src/", "include/", "cli/", "trainer/", "scripts/")) and UNFINISHED.search(line):
                faults.append(f"{name}:{number}: unfinished: {line.strip()[:100]}")
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(names)} files")


main()
