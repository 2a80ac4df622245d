"""A layer includes itself and lower ones; programs include pawl/*.h alone; no two files have one name."""
import collections
import pathlib
import re
import sys

LAYERS = ["base", "os", "codec", "formats", ("model", "stream"), "checkpoint"]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in ([names] if isinstance(names, str) else names)}
SYSTEM = re.compile(r"^[a-z0-9_/]+\.h$")


def faults_of(path, text):
    """path: relative to the top. Each fault is a line of text."""
    parts = path.split("/")
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if not match:
            continue
        quote, name = match.groups()
        where = f"{path}:{number}: includes {name}"
        if ".." in name.split("/"):
            yield f"{where}: climbs"
        if quote == "<":
            if name.startswith("pawl/"):
                yield f"{where}: our own headers are quoted"
            continue
        first = name.split("/")[0]
        if parts[0] == "include":
            if first != "pawl":
                yield f"{where}: a public header may include public headers only"
        elif parts[0] == "src":
            own = parts[1]
            if first == "pawl":
                continue
            if first not in LEVEL:
                yield f"{where}: is in no layer"
            elif LEVEL[first] > LEVEL[own]:
                yield f"{where}: {own} is below {first}"
            elif LEVEL[first] == LEVEL[own] and first != own:
                yield f"{where}: {own} and {first} stand side by side"
        elif parts[0] in ("cli", "trainer", "bindings", "bench"):
            if first not in ("pawl", "cli", "trainer") and "/" in name:
                if not (parts[0] == "bench" and first in LEVEL):
                    yield f"{where}: a program uses include/pawl only"


def self_test():
    cases = [
        ("src/os/file.c", '#include "base/fail.h"', 0),
        ("src/os/file.c", '#include "codec/utf8.h"', 1),
        ("src/model/set.c", '#include "stream/stream.h"', 1),
        ("src/stream/stream.c", '#include "formats/tokens/shard.h"', 0),
        ("src/base/fail.c", '#include "../os/file.h"', 2),
        ("cli/info.c", '#include "model/set.h"', 1),
        ("cli/info.c", '#include "pawl/model.h"', 0),
        ("include/pawl/run.h", '#include "os/os.h"', 1),
        ("trainer/train.c", "#include <pawl/run.h>", 1),
    ]
    for path, line, expected in cases:
        found = len(list(faults_of(path, line)))
        if found != expected:
            sys.exit(f"{path}: {line}: expected {expected} faults, found {found}")
    print(f"{len(cases)} cases")


def main():
    if "--self-test" in sys.argv:
        return self_test()
    faults, names, n = [], collections.defaultdict(list), 0
    for top in ("include", "src", "cli", "trainer", "bindings", "bench"):
        for path in sorted(pathlib.Path(top).rglob("*")):
            if path.suffix not in (".c", ".h", ".inc"):
                continue
            n += 1
            if top != "include":
                names[path.name].append(str(path))
            faults += faults_of(path.as_posix(), path.read_text())
    faults += [f"one name, several files: {', '.join(paths)}" for paths in names.values() if len(paths) > 1]
    if n == 0:
        sys.exit("no sources found")
    if faults:
        sys.exit("\n".join(faults))
    print(f"{n} files")


main()
