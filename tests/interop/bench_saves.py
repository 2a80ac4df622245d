"""bench/bench_save_peers.py runs, in small, and says what it promises: every key, every way that can be had here, and sums of rounds.

    bench_saves.py --library LIBPAWL.so --limits BENCH_LIMITS
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "bench_save_peers.py")
LAYOUTS = ("one", "split", "cut")
checks = 0


def check(holds, what):
    global checks
    checks += 1
    if not holds:
        sys.exit(f"bench_saves.py: {what}")


def run(*args):
    done = subprocess.run([sys.executable, PROGRAM, *args], capture_output=True, text=True)
    check(done.returncode == 0, f"{args}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def look_at(result, rounds, has_limits):
    said = result["summary"]
    for key in ("bench", "bytes", "tensors", "rounds", "cores", "versions", "other_cores", "save", "async", "load"):
        check(key in result, f"no {key}")
    check(result["rounds"] == rounds, f"{result['rounds']} rounds")
    for name in ("save", "load_cold", "load_warm"):
        rows = said[name]
        check({row["layout"] for row in rows if row["name"].startswith("Pawl")} == set(LAYOUTS), f"{name}: not every layout of Pawl's")
        check(any(row["hashes"] and not row["name"].startswith("Pawl") for row in rows), f"{name}: no peer that hashes")
        for row in rows:
            check(len(row["seconds"]) == rounds and min(row["seconds"]) > 0, f"{name}: {row}")
            check(row["median_seconds"] > 0 and row["gb_s"] > 0, f"{name}: {row}")
            is_limited = has_limits and (name != "load_warm" or row["hashes"])
            check(("to_limit" in row) == is_limited, f"{name}: {row}")
            if row["name"].startswith("Pawl"):
                for key in ("peer", "hashing_peer", "hashing_peer_without_threads", "hashing_peer_of_the_layout"):
                    check(row[f"to_{key}"] > 0 and not row[key].startswith("Pawl"), f"{name}: {row}")
    names = [row["name"] for row in said["async"]]
    check(names[:4] == ["Pawl, copy, split", "Pawl, borrow, split", "Pawl, copy, cut", "Pawl, borrow, cut"], f"in the background: {names}")
    for row in said["async"]:
        for key in ("stall", "durable", "loop_stall", "loop_durable", "added"):
            check(len(row[key]) == rounds and f"{key}_seconds" in row, f"in the background: {row}")
        check(row["stall_seconds"] <= row["durable_seconds"], f"in the background: {row}")
    check(bool(said["limits"]) == has_limits, f"limits: {said['limits']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--limits", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small = ["--library", args.library, "--bytes", "4000000", "--window", "0.05", "--dir", folder, "--rounds"]
        text = run(*small, "2", "--limits", args.limits, "--json")
        look_at(json.loads(text), 2, True)
        look_at(json.loads(run(*small, "1", "--json")), 1, False)
        check(os.listdir(folder) == [], f"left behind: {os.listdir(folder)}")
        path = os.path.join(folder, "result.json")
        with open(path, "w") as f:
            f.write(text)
        look_at(json.loads(run("--merge", path, path, "--json")), 4, True)
        for title in ("durable saves", "saves in the background", "loads, cold", "loads, warm"):
            check(title in run("--merge", path), f"the text has no {title}")
    print(f"{checks} checks")


if __name__ == "__main__":
    sys.exit(main())
