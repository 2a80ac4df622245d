"""An installed Pawl is found by pkg-config and by CMake, and a program built against each runs. install.py BUILD CC"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <pawl/pawl.h>

int
main(void)
{
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, 42, 54);
    if (strcmp(pawl_version(), PAWL_VERSION_TEXT) != 0 || pawl_pcg32_next(&rng) != 0xa15c02b7)
        return 1;
    puts(pawl_version());
    return 0;
}
"""

LISTS = """
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(pawl 0.1 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE pawl::pawl)
"""


def run(*command, **keywords):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **keywords)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}")
    return done.stdout


def main():
    build, cc = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        prefix = top / "prefix"
        run("cmake", "--install", build, "--prefix", str(prefix))
        (pc,) = prefix.rglob("pawl.pc")
        library = next(prefix.rglob("libpawl.so")).parent
        (top / "consumer.c").write_text(PROGRAM)
        environment = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent), LD_LIBRARY_PATH=str(library))

        # the prefix was chosen at install time, after the build was configured: pkg-config must say where the tree stands
        flags = run("pkg-config", "--cflags", "--libs", "pawl", env=environment)
        for flag, folder in (("-I", prefix / "include"), ("-L", library)):
            found = [pathlib.Path(word[2:]).resolve() for word in flags.split() if word.startswith(flag)]
            if found != [folder.resolve()]:
                sys.exit(f"pkg-config says {flags!r}, expected {flag}{folder}")
        run(cc, "-std=c11", str(top / "consumer.c"), "-o", str(top / "by-pkg-config"), *flags.split())
        if run(str(top / "by-pkg-config"), env=environment) != "0.1.0\n":
            sys.exit("by pkg-config: wrong version")
        if "libpawl.so.0" not in run("readelf", "-d", str(top / "by-pkg-config")):
            sys.exit("the program does not ask for the soname libpawl.so.0")

        (top / "CMakeLists.txt").write_text(LISTS)
        run("cmake", "-S", str(top), "-B", str(top / "build"), f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={cc}")
        run("cmake", "--build", str(top / "build"))
        if run(str(top / "build" / "consumer")) != "0.1.0\n":
            sys.exit("by CMake: wrong version")

        program = prefix / "bin" / "pawl"
        bare = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        if run(str(program), "--version", env=bare).split()[-1] != "0.1.0":
            sys.exit("the installed program does not run")
        for wanted in ("share/man/man1/pawl.1", "share/bash-completion/completions/pawl"):
            if not (prefix / wanted).exists():
                sys.exit(f"not installed: {wanted}")
        assert shutil.which("pkg-config")
    print("by pkg-config and by CMake")


main()
