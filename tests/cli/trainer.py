"""What the scripts beside this one share: data, a way to run the trainer, and what must hold of its root."""
import os
import pathlib
import re
import struct
import subprocess
import sys

CRASHED = 137


class Trainer:
    def __init__(self, program, folder, extra=()):
        self.program, self.folder = str(pathlib.Path(program).resolve()), pathlib.Path(folder)
        self.extra = list(extra)
        ids = [(i * i * 7 + 3 * i) % 251 for i in range(3000)]
        head = struct.pack("<iiii", 20240520, 1, len(ids), 256) + bytes(1008)
        (self.folder / "a.bin").write_bytes(head + struct.pack(f"<{len(ids)}H", *ids))
        ids = ids[100:1100]
        head = struct.pack("<iiii", 20240520, 1, len(ids), 256) + bytes(1008)
        (self.folder / "b.bin").write_bytes(head + struct.pack(f"<{len(ids)}H", *ids))

    def words(self, out, *more, steps=100, every=25, seed=7):
        return [self.program, "train", "bigram", "--method", "autograd", "--data", "a.bin", "b.bin", "--out", out,
                "--max-steps", str(steps), "--batch", "8", "--seq-len", "32", "--ckpt-every", str(every), "--seed",
                str(seed), *self.extra, *more]

    def environment(self, failpoints, variable):
        environment = {k: v for k, v in os.environ.items() if not k.endswith("_FAILPOINTS")}
        if failpoints:
            environment[variable] = failpoints
        return environment

    def run(self, out, *more, failpoints=None, variable="PAWL_FAILPOINTS", status=0, **keywords):
        """Run to an end and demand its exit status; the finished process."""
        done = subprocess.run(self.words(out, *more, **keywords), cwd=self.folder, text=True, timeout=60,
                              env=self.environment(failpoints, variable), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != status:
            sys.exit(f"{out} {more} {failpoints}: exit status {done.returncode}, wanted {status}\n{done.stdout}{done.stderr}")
        return done

    def start(self, out, *more, failpoints=None, **keywords):
        return subprocess.Popen(self.words(out, *more, **keywords), cwd=self.folder, text=True,
                                env=self.environment(failpoints, "PAWL_FAILPOINTS"), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def final(self, out):
        return (self.folder / out / "final.json").read_bytes()

    def latest(self, out):
        path = self.folder / out / "ckpt" / "LATEST"
        return path.read_text() if path.exists() else None

    def steps(self, out):
        root = self.folder / out / "ckpt"
        return sorted(p.name for p in root.iterdir() if re.fullmatch(r"step-\d{6,}", p.name)) if root.exists() else []

    def verify(self, out):
        """Every directory that is named step-N is complete, and LATEST names one of them."""
        steps = self.steps(out)
        if steps:
            done = subprocess.run([self.program, "verify", f"{out}/ckpt", "--profile", "tinyllm"], cwd=self.folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
            expect(done.returncode == 0, f"{out}: {done.stdout}")
        latest = self.latest(out)
        expect(latest is None or latest.rstrip("\n") in steps, f"{out}: LATEST is {latest!r}, steps {steps}")


def expect(fine, what):
    if not fine:
        sys.exit(what)


def same_model(a, b, folder):
    for name in ("config.json", "model.safetensors", "final.json"):
        expect((folder / a / name).read_bytes() == (folder / b / name).read_bytes(), f"{name} differs: {a}, {b}")
