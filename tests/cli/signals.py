"""SIGTERM and SIGINT: signals.py PAWL

Goal: the step ends, is saved, its ckpt event is written, exit status 130, and the run goes on to the same bytes; a second signal ends the
program at once. Method: the trainer sleeps in a failpoint after a step, so that the signal comes at a known place: nothing here
depends on speed, only the upper limits of waiting are times.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from trainer import Trainer, expect, same_model

WAIT_S = 60


def wait_for(what, found):
    end = time.monotonic() + WAIT_S
    while not found():
        expect(time.monotonic() < end, f"{what}: not within {WAIT_S} s")
        time.sleep(0.002)


def events(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def stop(trainer, out, number):
    log = trainer.folder / f"{out}.jsonl"
    process = trainer.start(out, "--progress", str(log), failpoints="train/after-step=33*sleep(500ms)")
    wait_for("step 33", lambda: any(e["kind"] == "step" and e["step"] == 33 for e in events(log)))
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=WAIT_S)
    expect(process.returncode == 130, f"exit status {process.returncode}: {stderr}")
    expect(stdout == "", f"an interrupted run printed {stdout!r}")
    steps = trainer.steps(out)
    last = steps[-1]
    # the signal is met while the 33rd step sleeps: at that step's end, or at the next
    expect(last in ("step-000033", "step-000034"), f"the last step is {last}")
    expect(trainer.latest(out) == last + "\n", f"LATEST is {trainer.latest(out)!r}")
    end = events(log)[-1]
    expect(end["kind"] == "ckpt" and f"step-{end['step']:06}" == last, f"the last event is {end}")
    name = signal.Signals(number).name
    wanted = f"pawl train bigram: {out}/ckpt: stopped by {name} after step {end['step']}, which is saved\nhint: --resume continues the run\n"
    expect(stderr.endswith(wanted), f"stderr ends in {stderr[-300:]!r}")
    expect(not (trainer.folder / out / "final.json").exists(), "an interrupted run has a final.json")
    trainer.verify(out)
    trainer.run(out, "--resume")
    same_model("straight", out, trainer.folder)


def second_signal(trainer):
    process = trainer.start("second", failpoints="train/after-step=3*sleep(600s)", every=1)
    wait_for("step 3", lambda: "step-000003" in trainer.steps("second"))
    process.send_signal(signal.SIGTERM)
    time.sleep(0.05)  # the first must have been noted; the second is sent again until the program is gone
    wait_for("the end", lambda: process.poll() is not None or process.send_signal(signal.SIGINT))
    expect(process.returncode == 130, f"exit status {process.returncode}")
    process.communicate()
    trainer.verify("second")
    trainer.run("second", "--resume")


def stop_pack(trainer):
    """SIGINT while packing: no manifest, no temporary, 130; the next pack goes on from there."""
    (trainer.folder / "lines").write_bytes(b"some words and an end\n" * 200000)
    words = [trainer.program, "tokens", "pack", "set", *["lines"] * 400, "--documents", "line", "--max-ids", "1000000"]
    process = subprocess.Popen(words, cwd=trainer.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for("a file", lambda: (trainer.folder / "set").exists() and os.listdir(trainer.folder / "set"))
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=WAIT_S)
    expect(process.returncode == 130, f"pack: exit status {process.returncode}: {stdout}{stderr}")
    left = [name for name in os.listdir(trainer.folder / "set") if not name.endswith(".bin")]
    expect(left == [], f"pack left {left}")
    words[4:-4] = ["lines"]
    expect(subprocess.run(words, cwd=trainer.folder, stdout=subprocess.DEVNULL, timeout=WAIT_S).returncode == 0, "no second pack")


def main():
    with tempfile.TemporaryDirectory(prefix="pawl-signals-") as folder:
        trainer = Trainer(sys.argv[1], folder)
        trainer.run("straight")
        stop(trainer, "term", signal.SIGTERM)
        stop(trainer, "int", signal.SIGINT)
        second_signal(trainer)
        stop_pack(trainer)


main()
