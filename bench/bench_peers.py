"""bench_peers.py: Pawl beside the reference library, on the same files, in turn.

    build/peers/bin/python bench/bench_peers.py --library build/release/libpawl.so --pawl build/release/cli/pawl [--rounds N] [--json]

For files of 200, 31,337, 200,000 and 800,000 tensors:

* open: safe_open() of the reference from Python, and pawl_model_open() through ctypes, each with its close, in turn; the ratio of each
  pair of turns, and the median of the ratios. Both read, check and index the header; the file is warm. The call through ctypes costs
  Pawl about 1 us, the reference's own binding less.
* memory: how much larger the process has become by opening, per byte of header, each in a process of its own.
* ls: time and memory of the process `pawl ls FILE` and `pawl info FILE`, and of the usual line of Python that prints names and shapes, on a
  sparse file of 1 GiB and 300 tensors.

Numbers are of a machine that may have other work: medians, and nothing is asserted.
"""
import argparse
import ctypes
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "interop"))
from pawl_ctypes import Error, Library  # noqa: E402

SIZES = [200, 31337, 200000, 800000]
PARTS = ["self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
         "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight", "input_layernorm.weight"]
USUAL_LINE = ("import sys; from safetensors import safe_open; f = safe_open(sys.argv[1], 'np'); "
              "[print(k, f.get_slice(k).get_dtype(), f.get_slice(k).get_shape()) for k in f.keys()]")


def make_file(path, n, bytes_each):
    """A sparse file; the bytes of its header."""
    begin, members = 0, []
    for i in range(n):
        members.append('"l.%d.%s":{"dtype":"BF16","shape":[%d],"data_offsets":[%d,%d]}'
                       % (i // 8, PARTS[i % 8], bytes_each // 2, begin, begin + bytes_each))
        begin += bytes_each
    text = ("{" + ",".join(members) + "}").encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + begin)
    return len(text)


class Pawl:
    name = "pawl"

    def __init__(self, library):
        self.lib, self.error = Library(library).lib, Error()

    def open(self, path):
        model = ctypes.c_void_p()
        if self.lib.pawl_model_open_z(path.encode(), None, ctypes.byref(model), self.error) != 0:
            raise RuntimeError(self.error.message.decode())
        return model

    def close(self, model):
        self.lib.pawl_model_close(model)


class Reference:
    name = "safetensors"

    def __init__(self):
        from safetensors import safe_open
        self.safe_open = safe_open

    def open(self, path):
        return self.safe_open(path, framework="np")

    def close(self, opened):
        opened.__exit__(None, None, None)


def time_open(peer, path, repeats):
    begin = time.perf_counter()
    for _ in range(repeats):
        peer.close(peer.open(path))
    return (time.perf_counter() - begin) / repeats


def resident_bytes():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory_of(args, which, path):
    """Asked of a fresh process: what its memory has grown by while the file is open."""
    line = [sys.executable, os.path.abspath(__file__), "--library", args.library, "--memory", which, path]
    return int(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def tell_memory(args):
    peer = Pawl(args.library) if args.memory[0] == "pawl" else Reference()
    small = args.memory[1] + ".small"
    make_file(small, 1, 64)
    peer.close(peer.open(small))  # what a first call takes once is no part of it
    os.unlink(small)
    before = resident_bytes()
    opened = peer.open(args.memory[1])
    print(resident_bytes() - before)
    del opened


def run_process(line):
    """Seconds that a process takes, from the fork to its end."""
    begin = time.perf_counter()
    status = subprocess.call(line, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    if status != 0:
        raise RuntimeError("%s: status %d" % (line, status))
    return seconds


def peak_of(line):
    """Its peak memory, by time(1): what this process could ask of its own child counts the memory of this one too. None without it."""
    program = shutil.which("time")
    if program is None:
        return None
    done = subprocess.run([program, "-f", "%M", *line], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return int(done.stderr.split()[-1]) * 1024


def measure_opens(args, folder):
    results = []
    peers = [Pawl(args.library), Reference()]
    for n in SIZES:
        path = os.path.join(folder, "n%d.safetensors" % n)
        header = make_file(path, n, 64)
        repeats = max(1, 20000 // n)
        times = {peer.name: [] for peer in peers}
        for peer in peers:
            time_open(peer, path, 1)
        for _ in range(args.rounds):
            for peer in peers:
                times[peer.name].append(time_open(peer, path, repeats))
        ratios = [theirs / ours for ours, theirs in zip(times["pawl"], times["safetensors"])]
        results.append({"tensors": n, "header_bytes": header, "pawl_seconds": statistics.median(times["pawl"]),
                        "safetensors_seconds": statistics.median(times["safetensors"]), "ratio": statistics.median(ratios),
                        "ratio_least": min(ratios), "header_bytes_per_second": header / statistics.median(times["pawl"]),
                        "pawl_memory_per_header_byte": memory_of(args, "pawl", path) / header,
                        "safetensors_memory_per_header_byte": memory_of(args, "safetensors", path) / header})
        os.unlink(path)
    return results


def measure_processes(args, folder):
    path = os.path.join(folder, "big.safetensors")
    make_file(path, 300, (1 << 30) // 300 // 2 * 2)
    lines = {"pawl ls": [args.pawl, "ls", path], "pawl info": [args.pawl, "info", path],
             "python": [sys.executable, "-c", USUAL_LINE, path]}
    times = {name: [] for name in lines}
    for _ in range(max(args.rounds, 5)):
        for name, line in lines.items():
            times[name].append(run_process(line))
    return [{"command": name, "seconds": statistics.median(times[name]), "seconds_least": min(times[name]),
             "peak_bytes": peak_of(line)} for name, line in lines.items()]


def main():
    parser = argparse.ArgumentParser(description="Pawl beside the reference library")
    parser.add_argument("--library", required=True)
    parser.add_argument("--pawl")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory:
        return tell_memory(args)
    with tempfile.TemporaryDirectory() as folder:
        opens = measure_opens(args, folder)
        processes = measure_processes(args, folder) if args.pawl else []
    if args.json:
        import safetensors
        print(json.dumps({"bench": "peers", "safetensors": safetensors.__version__, "rounds": args.rounds, "open": opens,
                          "processes": processes}))
        return None
    print("%8s %12s %12s %12s %8s %8s %8s %12s %12s" % ("tensors", "header", "pawl", "safetensors", "ratio", "least", "GB/s",
                                                         "pawl mem/B", "their mem/B"))
    for r in opens:
        print("%8d %10d B %9.3f ms %9.3f ms %8.1f %8.1f %8.2f %12.2f %12.2f" % (
            r["tensors"], r["header_bytes"], r["pawl_seconds"] * 1e3, r["safetensors_seconds"] * 1e3, r["ratio"], r["ratio_least"],
            r["header_bytes_per_second"] * 1e-9, r["pawl_memory_per_header_byte"], r["safetensors_memory_per_header_byte"]))
    for r in processes:
        peak = "?" if r["peak_bytes"] is None else "%.1f" % (r["peak_bytes"] / (1 << 20))
        print("%-10s %8.2f ms (least %.2f), %s MiB" % (r["command"], r["seconds"] * 1e3, r["seconds_least"] * 1e3, peak))
    return None


if __name__ == "__main__":
    sys.exit(main())
