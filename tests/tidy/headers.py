"""Every public header compiles on its own as strict C11 and as C++."""
import pathlib
import shutil
import subprocess
import sys

FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Iinclude", "-fsyntax-only"]


def main():
    cc = sys.argv[1]
    cxx = shutil.which("clang++" if "clang" in pathlib.Path(cc).name else "g++")
    if cxx is None:
        sys.exit("no C++ compiler: install g++")
    headers = sorted(pathlib.Path("include/pawl").glob("*.h"))
    for header in headers:
        for command in ([cc, "-std=c11", "-x", "c"], [cxx, "-std=c++11", "-x", "c++"]):
            source = f'#include "pawl/{header.name}"\nint main(void);\nint main(void) {{ return 0; }}\n'
            done = subprocess.run([*command, *FLAGS, "-"], input=source, text=True, stderr=subprocess.PIPE)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: {header}:\n{done.stderr}")
    print(f"{len(headers)} headers")


main()
