"""The Python package beside safetensors, on the same tensors, in turn, in one process.

    bench_python.py [--mib N] [--tensors N] [--rounds N] [--json] [--pawl PATH]

Medians over the rounds, and the median of the ratios of each round (ours / theirs: less is better). Rows:

  open          opening a file of many tensors and listing its names
  load mapped   every tensor as an array over the map (ours: copy=False; theirs has none, so its load_file)
  load          load_file to arrays of one's own
  save          save_file to arrays of one's own, durable (theirs does not sync; its row with an fsync after is the fair one)
  header        read_header against safe_open and get_shape of each
  import        `import pawl` after NumPy, in a fresh interpreter

With --pawl, a built `pawl` program: the C engine writes the same bytes by `pawl convert`, which the durable save is held against.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pawl
import pawl.numpy

try:
    import safetensors
    import safetensors.numpy
except ImportError:
    sys.exit("bench_python.py: safetensors is not installed here")


def timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    kept = call()
    seconds = time.perf_counter() - begin
    del kept
    return seconds


def fsync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def compare(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    a, b = [], []
    for i in range(rounds + 1):
        pair = (timed(ours), timed(theirs)) if i % 2 else tuple(reversed((timed(theirs), timed(ours))))
        if i:  # the first is warm-up
            a.append(pair[0])
            b.append(pair[1])
    return statistics.median(a), statistics.median(b), statistics.median(x / y for x, y in zip(a, b, strict=True))


def their_save(tensors: dict[str, np.ndarray], path: str, with_sync: bool) -> None:
    safetensors.numpy.save_file(tensors, path)
    if with_sync:
        fsync(path)


def our_open(path: str) -> list[str]:
    with pawl.safe_open(path, "np") as f:
        return f.keys()


def their_open(path: str) -> list[str]:
    with safetensors.safe_open(path, "np") as f:
        return list(f.keys())


def their_shapes(path: str) -> list[object]:
    with safetensors.safe_open(path, "np") as f:
        return [f.get_slice(name).get_shape() for name in f.keys()]


def import_ms(rounds: int) -> float:
    code = "import time, numpy; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    times = []
    for _ in range(rounds):
        done = subprocess.run([sys.executable, "-c", code.format("pawl, pawl.numpy")], capture_output=True, text=True, check=True)
        times.append(float(done.stdout))
    return statistics.median(times) * 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--tensors", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pawl")
    args = parser.parse_args()

    each = args.mib * (1 << 20) // args.tensors // 4 // 64
    tensors = {f"model.layers.{i:04d}.weight": np.random.default_rng(i).random((64, each), "f4") for i in range(args.tensors)}
    rows: dict[str, dict[str, float]] = {}

    with tempfile.TemporaryDirectory(prefix="pawl-bench-") as folder:
        path, ours, theirs = (os.path.join(folder, name) for name in ("f", "ours", "theirs"))
        pawl.numpy.save_file(tensors, path)
        if open(path, "rb").read(4096) != safetensors.numpy.save(tensors)[:4096]:
            sys.exit("bench_python.py: the two do not write the same bytes")

        def row(name: str, a: Callable[[], object], b: Callable[[], object], rounds: int = args.rounds) -> None:
            seconds, other, ratio = compare(a, b, rounds)
            rows[name] = {"ours_ms": seconds * 1000, "theirs_ms": other * 1000, "ratio": ratio}

        row("open", lambda: our_open(path), lambda: their_open(path), 50)
        row("header", lambda: pawl.read_header(path), lambda: their_shapes(path), 50)
        row("load mapped", lambda: pawl.numpy.load_file(path, copy=False), lambda: safetensors.numpy.load_file(path))
        row("load", lambda: pawl.numpy.load_file(path), lambda: safetensors.numpy.load_file(path))
        row("save, no sync", lambda: pawl.numpy.save_file(tensors, ours, durable=False), lambda: their_save(tensors, theirs, False))
        row("save, durable", lambda: pawl.numpy.save_file(tensors, ours), lambda: their_save(tensors, theirs, True))
        if args.pawl:
            # The same bytes, read and written by the C engine; what starting the program costs is taken off.
            start = statistics.median(timed(lambda: subprocess.run([args.pawl, "--version"], stdout=subprocess.DEVNULL)) for _ in range(5))
            convert = [args.pawl, "convert", path, os.path.join(folder, "c"), "--force", "--quiet"]
            seconds, other, ratio = compare(
                lambda: pawl.numpy.save_file(tensors, ours), lambda: subprocess.run(convert, check=True), args.rounds
            )
            other -= start
            rows["save, against C"] = {"ours_ms": seconds * 1000, "theirs_ms": other * 1000, "ratio": seconds / other}
    rows["import"] = {"ours_ms": import_ms(11)}

    if args.json:
        print(json.dumps({"mib": args.mib, "tensors": args.tensors, "rounds": args.rounds, "rows": rows}))
        return
    print(f"{args.mib} MiB in {args.tensors} tensors, medians of {args.rounds} rounds; safetensors {safetensors.__version__}, NumPy {np.__version__}")
    for name, found in rows.items():
        if "ratio" in found:
            print(f"{name:16} {found['ours_ms']:10.3f} ms {found['theirs_ms']:10.3f} ms   x {found['ratio']:.3f}")
        else:
            print(f"{name:16} {found['ours_ms']:10.3f} ms")


main()
