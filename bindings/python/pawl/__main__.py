"""``python -m pawl``, and the command ``pawl``: the program that the package was built with."""

from __future__ import annotations

import os
import shutil
import signal
import sys


def program() -> str | None:
    """Where the program is: in the package; else (built over the system's libpawl) on the PATH."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "pawl")
    if os.access(own, os.X_OK):
        return own
    me = os.path.realpath(sys.argv[0]) if sys.argv else ""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("pawl", path=folder) if folder else None
        if found is not None and os.path.realpath(found) != me:
            return found
    return None


def main() -> int:
    found = program()
    if found is None:
        print("pawl: this package was built without the program, and there is none on the PATH", file=sys.stderr)
        return 1
    # Python ignores these, and what is ignored stays so in the program: it would hear of a closed pipe as of any failed write.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(found, ["pawl", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
