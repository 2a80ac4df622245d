"""pawl bench: what it prints, and that nothing of it stays: after the end, after a signal, after a failure. No number is judged."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

PAWL = sys.argv[1]
LIMITS = {"hash_one_stream_gb_s", "hash_gb_s", "write_direct_gb_s", "write_direct_2_gb_s", "write_buffered_gb_s",
          "read_direct_gb_s", "copy_gb_s"}
REACHED = {"save_gb_s", "save_async_gb_s", "load_cold_gb_s", "load_warm_gb_s", "stall_seconds"}
RATIOS = {"save", "load_cold", "load_warm", "stall_to_copy", "async_to_save"}


def expect(is_so, what):
    if not is_so:
        sys.exit(f"bench.py: {what}")


def measures(folder):
    done = subprocess.run([PAWL, "bench", folder, "--bytes", "64MiB", "--json"], capture_output=True, text=True)
    expect(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
    expect(done.stderr == "", f"stderr: {done.stderr!r}")
    document = json.loads(done.stdout)
    expect(document["ok"] is True and document["rounds"] == 3, "ok and rounds")
    expect(0 < (64 << 20) - document["bytes"] < 147 * 64, f"bytes {document['bytes']}")
    for name, keys in (("limits", LIMITS), ("pawl", REACHED), ("ratios", RATIOS)):
        expect(set(document[name]) == keys, f"{name}: {sorted(document[name])}")
        for key, value in document[name].items():
            is_direct = key.startswith("write_direct")
            expect((value is None and is_direct) or value > 0, f"{key} is {value}")
    expect(os.listdir(folder) == [], f"it left {os.listdir(folder)}")


def stops(folder):
    process = subprocess.Popen([PAWL, "bench", folder, "--bytes", "64MiB"], stdout=subprocess.PIPE)
    while not os.listdir(folder) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=100)
    expect(process.returncode == 130, f"a stopped one exits with {process.returncode}")
    expect(out == b"", "a stopped one prints numbers")
    expect(os.listdir(folder) == [], f"a stopped one left {os.listdir(folder)}")


def refuses(folder):
    done = subprocess.run([PAWL, "bench", folder + "/missing"], capture_output=True, text=True)
    expect(done.returncode not in (0, 2) and "look at" in done.stderr, f"{done.returncode}: {done.stderr}")
    done = subprocess.run([PAWL, "bench", folder, "--bytes", "1MiB"], capture_output=True, text=True)
    expect(done.returncode == 2, f"1 MiB: {done.returncode}")


with tempfile.TemporaryDirectory(dir=".") as home:
    measures(home)
    stops(home)
    refuses(home)
