"""Power is lost under a real ext4: real_disk.py PAWL WORKER [ROUNDS [SEED]]

A run saves on an ext4 in an image file. At a random instant power is "lost": with dm-flakey every later write is dropped; where the kernel has no
device mapper, the process is stopped and the image copied, which is what the device has at that instant: what ext4 still holds in
memory is not in it. Then the image is mounted again, its journal replayed, and looked at: every step verifies, LATEST names one, and no
step that was reported durable is lost. The run goes on there to its end, and ends with the bytes of one that was never stopped.

Needs root, mkfs.ext4 and loop devices; exit status 77 (skipped), and why, without them.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

STEPS = "12"
IMAGE_BYTES = 48 << 20
SKIPPED = 77


def run(*words):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def must(*words):
    done = run(*words)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout}")
    return done.stdout


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


class Disk:
    """An image, mounted; with dm-flakey between loop device and filesystem where there is one."""

    def __init__(self, image, folder, has_flakey):
        self.image, self.folder, self.has_flakey = image, folder, has_flakey
        self.loop = must("losetup", "-f", "--show", image).strip()
        self.name = f"pawl-proof-{os.getpid()}"
        self.device = self.loop
        try:
            if has_flakey:
                self.table(f"0 {IMAGE_BYTES // 512} flakey {self.loop} 0 1000 0", "create")
                self.device = f"/dev/mapper/{self.name}"
            folder.mkdir(exist_ok=True)
            must("mount", "-t", "ext4", self.device, folder)
        except RuntimeError:
            self.detach()
            raise

    def table(self, text, how):
        if how == "create":
            must("dmsetup", "create", self.name, "--table", text)
            return
        must("dmsetup", "suspend", "--nolockfs", self.name)
        must("dmsetup", "load", self.name, "--table", text)
        must("dmsetup", "resume", self.name)

    def lose_power(self, to):
        """What the device has now, as an image at `to`. The writers must be stopped."""
        if self.has_flakey:
            self.table(f"0 {IMAGE_BYTES // 512} flakey {self.loop} 0 0 1000 1 drop_writes", "load")
        shutil.copyfile(self.image, to)

    def detach(self):
        if self.device != self.loop:
            run("dmsetup", "remove", self.name)
        run("losetup", "-d", self.loop)

    def close(self):
        run("umount", self.folder)
        self.detach()


def make_image(path):
    with open(path, "wb") as file:
        file.truncate(IMAGE_BYTES)
    must("mkfs.ext4", "-q", "-F", path)


def durable_step(root):
    """The step that was surely reported: LATEST's, when the next has been begun; else the one before it."""
    try:
        latest = int(re.fullmatch(r"step-(\d+)\n", (root / "LATEST").read_text())[1])
    except (FileNotFoundError, TypeError):
        return 0
    begun = any(entry.name.startswith(f"step-{latest + 1:06d}") for entry in root.iterdir())
    return latest if begun else latest - 1


def look(pawl, root, durable):
    if not root.exists() and durable <= 0:
        return
    steps = json.loads(must(pawl, "ckpt", "ls", root, "--json"))
    broken = [step["name"] for step in steps["steps"] if not step["complete"]]
    if broken:
        raise RuntimeError(f"not complete: {broken}")
    if (root / "LATEST").exists() and steps["latest"] not in [step["name"] for step in steps["steps"]]:
        raise RuntimeError(f"LATEST names {steps['latest']}")
    newest = max([step["step"] for step in steps["steps"]], default=0)
    if newest < durable:
        raise RuntimeError(f"step {durable} was reported durable, and the newest is {newest}")
    if durable > 0 and json.loads(must(pawl, "ckpt", "latest", root, "--json"))["step"] < durable:
        raise RuntimeError(f"a load takes a step before {durable}")


def one_round(pawl, worker, work, has_flakey, draw, whole):
    image, lost = work / "image", work / "lost"
    make_image(image)
    disk = Disk(image, work / "disk", has_flakey)
    try:
        child = subprocess.Popen([worker, disk.folder / "ckpt", STEPS, "7"])
        time.sleep(draw.uniform(0.0, 1.2 * whole))
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        durable = durable_step(disk.folder / "ckpt")
        disk.lose_power(lost)
        child.kill()
        child.wait()
    finally:
        disk.close()
    disk = Disk(lost, work / "disk", False)
    try:
        look(pawl, disk.folder / "ckpt", durable)
        must(worker, disk.folder / "ckpt", STEPS, "7")
        return durable, (disk.folder / "ckpt" / f"step-{int(STEPS):06d}" / "MANIFEST.json").read_text()
    finally:
        disk.close()


def fill(pawl, work):
    """A small filesystem fills up under `pawl train`: exit status 75, both numbers, the steps before intact, no debris."""
    must("mkfs.ext4", "-q", "-F", "-m", "0", work / "small", "4096k")
    disk = Disk(work / "small", work / "disk", False)
    try:
        must(sys.executable, pathlib.Path(__file__).parents[1] / "cli" / "fixture.py", "shard", work / "d.bin", "--ids", "500")
        done = run(pawl, "train", "bigram", "--method", "autograd", "--data", work / "d.bin", "--out", disk.folder / "o", "--max-steps",
                   "9", "--batch", "2", "--seq-len", "8", "--ckpt-every", "1", "--quiet")
        root = disk.folder / "o" / "ckpt"
        steps = json.loads(must(pawl, "ckpt", "ls", root, "--json"))["steps"]
        left = sorted(entry.name for entry in root.iterdir() if not entry.name.startswith("step-0") or entry.suffix)
        if done.returncode != 75 or not re.search(r"need \d|\d+ bytes|available", done.stdout):
            raise RuntimeError(f"a full disk: exit status {done.returncode}: {done.stdout}")
        if not steps or not all(step["complete"] for step in steps) or left != ["LATEST"]:
            raise RuntimeError(f"a full disk leaves {left} and {steps}")
        return len(steps)
    finally:
        disk.close()


def main():
    pawl, worker = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else time.time_ns()
    if os.geteuid() != 0:
        skip("mounting needs root")
    for program in ("mkfs.ext4", "losetup", "mount", "umount"):
        if shutil.which(program) is None:
            skip(f"there is no {program}")
    has_flakey = shutil.which("dmsetup") is not None and "flakey" in run("dmsetup", "targets").stdout
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="pawl-disk-") as name:
        work = pathlib.Path(name)
        make_image(work / "image")
        try:
            disk = Disk(work / "image", work / "disk", has_flakey)
        except RuntimeError as error:
            skip(error)
        began = time.monotonic()
        try:
            must(worker, disk.folder / "ckpt", STEPS, "7")
            wanted = (disk.folder / "ckpt" / f"step-{int(STEPS):06d}" / "MANIFEST.json").read_text()
        finally:
            disk.close()
        whole = time.monotonic() - began
        try:
            kept = fill(pawl, work)
        except RuntimeError as error:
            sys.exit(str(error))
        reached = set()
        for number in range(rounds):
            try:
                durable, found = one_round(pawl, worker, work, has_flakey, draw, whole)
            except RuntimeError as error:
                sys.exit(f"seed {seed}, round {number}: {error}")
            if found != wanted:
                sys.exit(f"seed {seed}, round {number}: the resumed run ends with other bytes")
            reached.add(durable)
    how = "dm-flakey drops all later writes" if has_flakey else "the image copied while the run is stopped"
    print(f"4 MiB full after {kept} steps: exit status 75, all of them intact")
    print(f"seed {seed}: power lost {rounds} times under ext4 ({how}), after {len(reached)} different steps: none lost, all bytes equal")


main()
