"""SIGINT, a full pipe's end and a killed reader while a model is rewritten: convert_signals.py PAWL

Goal: an interrupted run exits with 130, leaves neither a temporary nor a directory that it made, and keeps the old output; one whose reader
goes away ends quietly. Method: pawl writes to a pipe that nobody empties, so that it stands still at a known place until it is told to end;
for a directory, the model is sparse and large enough that the signal comes while it is copied: when it comes too late, it is sent earlier.
"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

WAIT_S = 60


def expect(true, text):
    if not true:
        sys.exit(text)


def sparse_model(path, n, each):
    header = {f"t{i}": {"dtype": "U8", "shape": [each], "data_offsets": [i * each, (i + 1) * each]} for i in range(n)}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + n * each)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def to_pipe(pawl, folder):
    """Blocked in a write: the signal ends it."""
    process = subprocess.Popen([pawl, "merge", "in.safetensors", "-"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect(len(os.read(process.stdout.fileno(), 100)) == 100, "nothing came")
    process.send_signal(signal.SIGINT)
    end = time.monotonic() + WAIT_S
    while process.poll() is None:  # it stands in a write; SIGINT is sent again until it has been seen
        expect(time.monotonic() < end, "merge to a pipe does not end")
        time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    expect(process.returncode == 130, f"merge to a pipe: exit status {process.returncode}")


def reader_gone(pawl, folder):
    process = subprocess.Popen([pawl, "merge", "in.safetensors", "-"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(100)
    process.stdout.close()
    expect(process.wait(WAIT_S) in (-signal.SIGPIPE, 0), f"without a reader: exit status {process.returncode}")
    expect(process.stderr.read() == b"", "without a reader something is said")


def to_directory(pawl, folder, before):
    for delay in (0.05, 0.02, 0.01, 0.005, 0.002, 0.001):
        process = subprocess.Popen([pawl, "shard", "in.safetensors", "out", "--max-shard-size", "40MiB"], cwd=folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + WAIT_S
        while not (folder / "out").exists() or not list((folder / "out").glob(".*.tmp")):
            if process.poll() is not None:
                break
            expect(time.monotonic() < end, "no temporary appears")
            time.sleep(delay / 10)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=WAIT_S)
        if process.returncode == 130:
            expect(stderr == "pawl shard: out: canceled by the caller; nothing was changed\n", f"stderr is {stderr!r}")
            expect(names(folder) == before, f"left: {names(folder)}")
            return
        for path in (folder / "out").iterdir():
            path.unlink()
        (folder / "out").rmdir()
    sys.exit("the signal always came too late")


def main():
    pawl = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="pawl-convert-") as name:
        folder = pathlib.Path(name)
        sparse_model(folder / "in.safetensors", 10, 30 << 20)
        before = names(folder)
        to_pipe(pawl, folder)
        reader_gone(pawl, folder)
        expect(names(folder) == before, f"left: {names(folder)}")
        to_directory(pawl, folder, before)


main()
