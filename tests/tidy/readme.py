"""The C examples of README.md compile without a warning, as C and as C++, and run. readme.py BUILD CC

A block begins with ```c; it is a whole program when it has a main. Each runs in an empty folder and must exit 0; a comment
`// prints: TEXT` or `/* prints: TEXT */` in it is held against its output. README's promises of files are checked too."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def main():
    build, cc = pathlib.Path(sys.argv[1]), sys.argv[2]
    text = pathlib.Path("README.md").read_text()
    blocks = re.findall(r"^```c\n(.*?)^```", text, re.M | re.S)
    programs = [block for block in blocks if re.search(r"^main\(|\bint main\(", block, re.M)]
    if not programs:
        sys.exit("README.md has no C program")
    for number, program in enumerate(programs, 1):
        with tempfile.TemporaryDirectory() as name:
            top = pathlib.Path(name)
            (top / "example.c").write_text(program)
            command = [cc, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{os.getcwd()}/include", "example.c",
                       f"-L{build}", f"-Wl,-rpath,{build}", "-lpawl", "-o", "example"]
            done = subprocess.run(command, cwd=top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                sys.exit(f"README program {number} does not build:\n{done.stdout}")
            cxx = shutil.which("clang++" if "clang" in pathlib.Path(cc).name else "g++")
            if cxx is None:
                sys.exit("no C++ compiler: install g++")
            done = subprocess.run([cxx, "-std=c++20", "-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-missing-field-initializers",
                                   "-Werror", f"-I{os.getcwd()}/include", "example.c"],
                                  cwd=top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                sys.exit(f"README program {number} is no C++:\n{done.stdout}")
            for attempt in ("first", "second"):
                done = subprocess.run(["./example"], cwd=top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if done.returncode != 0:
                    sys.exit(f"README program {number}, {attempt} run: status {done.returncode}\n{done.stdout}")
                for wanted in re.findall(rf"/\* {attempt} run prints: (.*?) \*/", program):
                    if wanted not in done.stdout:
                        sys.exit(f"README program {number}, {attempt} run: expected {wanted!r} in:\n{done.stdout}")
    for path in re.findall(r"\]\(((?!http)[^)#]+)\)", text):
        if not pathlib.Path(path).exists():
            sys.exit(f"README.md names {path}, which is not there")
    print(f"{len(programs)} programs")


main()
