"""The replay gives the same bits whatever builds it: GCC and Clang, without optimisation, with, and with the processor's own
instructions, also where the command line asks for contraction; and it refuses to be built with fast-math.

llmcp35_builds.py FOLDER LIBRARY...: run from the top of the tree. FOLDER takes the builds; the libraries are linked behind them."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

GOLDEN = pathlib.Path("tests/golden/llmcp35")
LEVELS = ["-O0", "-O2", "-O3 -march=native"]
FUSED = "-O3 -march=native -ffp-contract=fast"
SOURCES = ["tests/unit/llmcp35_trace.c", "src/formats/llmcp35/lc_rotary.c", "trainer/fault.c", "trainer/talk.c",
           *sorted(str(path) for path in pathlib.Path("trainer").glob("llmcp35_*.c"))]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Iinclude", "-Isrc", "-I."]


def build(folder, compiler, level, libraries):
    program = folder / (compiler + level.replace(" ", "").replace("=", ""))
    subprocess.run([compiler, *FLAGS, *level.split(), *SOURCES, "-o", program, *libraries, "-lcrypto", "-lm", "-lpthread"],
                   check=True)
    return program


def trace(program):
    """The traces of all golden replays; None when the program refuses."""
    texts = []
    for replay in json.loads((GOLDEN / "replay.json").read_text()):
        words = [str(GOLDEN / replay["checkpoint"]), str(replay["batch"]), replay["learning_rate"],
                 ",".join(map(str, replay["inputs"])), ",".join(map(str, replay["targets"]))]
        done = subprocess.run([program, *words], capture_output=True, text=True)
        if "this build fuses products and sums" in done.stderr:
            return None
        if done.returncode != 0:
            sys.exit(f"{program}: {done.stderr}")
        texts.append(done.stdout)
    return texts


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
    if not compilers:
        sys.exit("no compiler found")
    jobs = [(compiler, level) for compiler in compilers for level in [*LEVELS, FUSED]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = list(pool.map(lambda job: build(folder, *job, sys.argv[2:]), jobs))
    first = trace(programs[0])
    golden = (GOLDEN / "replay-fixture-trace.tsv").read_text()
    if "".join(line + "\n" for line in first[0].splitlines() if not line.startswith("loss\t")) != golden:
        sys.exit(f"{jobs[0]}: the trace of the fixture is not the golden one")
    n_same = 1
    for job, program in zip(jobs[1:], programs[1:]):
        found = trace(program)
        if found is None and job[1] == FUSED:
            continue
        if found is None:
            sys.exit(f"{job}: refuses to run")
        n_same += 1
        for i, (a, b) in enumerate(zip(first, found)):
            for x, y in zip(a.splitlines(), b.splitlines()):
                if x != y:
                    sys.exit(f"{job}: replay {i} differs from {jobs[0]} in {x.split()[0]}")
    for compiler in compilers:
        for source in ("trainer/llmcp35_forward.c", "src/formats/llmcp35/lc_rotary.c"):
            done = subprocess.run([compiler, *FLAGS, "-O2", "-ffast-math", "-fsyntax-only", source], capture_output=True,
                                  text=True)
            if done.returncode == 0 or "fast-math" not in done.stderr:
                sys.exit(f"{compiler}: {source} is built with -ffast-math")
    print(f"{n_same} of {len(jobs)} builds ran, {sum(len(text) for text in first)} bytes of trace each: the same")


main()
