"""Every public header compiles on its own as strict C11 and as C++, and every macro that makes a struct works in both. headers.py BUILD CC

A compound literal's address is C only: GCC refuses it in C++, and a C++ program finds that out in its own code."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Iinclude", "-fsyntax-only"]

LITERALS = """
static const struct pawl_tensor *same(const struct pawl_tensor *tensor);
static const struct pawl_tensor *same(const struct pawl_tensor *tensor)
{
    const uint64_t want[3] = { 2, 3, 4 };
    if (tensor->size != sizeof *tensor || tensor->slot != PAWL_MODEL || tensor->dtype != PAWL_F32 || tensor->data == 0)
        return 0;
    for (size_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] != want[i])
            return 0;
    return tensor;
}
int main(void);
int main(void)
{
    static float w[2][3][4];
    size_t sum = 0;
OPTIONS    if (!same(&PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 2, 3, 4)) || !same(&PAWL_SCALAR(PAWL_MODEL, "s", PAWL_F32, w)))
        return 1;
#ifdef __cplusplus
    auto kept = PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 2, 3, 4);
    auto other = kept;
    if (!same(&kept) || !same(&other) || kept.shape == other.shape)
        return 1;
#endif
    return sum == 0;
}
"""


def literals(build, cc, cxx, headers):
    """A program with every macro, built by each compiler and run."""
    names = sorted(set(re.findall(r"define (PAWL_[A-Z0-9_]+)\(\.\.\.\)\s*\\?\s*PAWL_LITERAL_", "".join(h.read_text() for h in headers))))
    if len(names) < 15:
        sys.exit(f"only {len(names)} macros make a struct: {names}")
    options = "".join(f"    sum += (&{name}())->size;\n" for name in names)
    source = '#include "pawl/llmcp35.h"\n#include "pawl/pawl.h"\n' + LITERALS.replace("OPTIONS", options)
    flags = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-Iinclude"]
    library = [f"-L{build}", f"-Wl,-rpath,{build}", "-lpawl"]
    with tempfile.TemporaryDirectory() as top:
        for command in ([cc, "-std=c11", "-x", "c"], *([cxx, f"-std=c++{year}", "-x", "c++"] for year in (11, 20))):
            for step in ([*command, *flags, "-", "-o", f"{top}/literals", *library], [f"{top}/literals"]):
                done = subprocess.run(step, input=source, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                if done.returncode != 0:
                    sys.exit(f"{' '.join(step)}: status {done.returncode}\n{done.stdout}\n{source}")
    return len(names)


def main():
    build, cc = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
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
    print(f"{len(headers)} headers, {literals(build, cc, cxx, headers)} macros")


main()
