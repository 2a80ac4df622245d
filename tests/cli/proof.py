"""The proof: a run that was killed and resumed ends with the bytes of one that never stopped. proof.py PAWL adamw|sgd|momentum|saves|async

Goal: every bit that a run depends on is in its checkpoint, and what a kill leaves is a checkpoint. Method: the same arguments
straight through, and killed at chosen steps (failpoint crash: nothing is flushed), resumed, perhaps killed again, and resumed; the
bytes of final.json, of the model and of the last checkpoint are compared. `saves` kills at every point of a save, in every save; `async`
does so while the run goes on, where a step counts from its ckpt event on.
"""
import json
import os
import pathlib
import sys
import tempfile

from trainer import CRASHED, Trainer, expect, same_model

OPTIMIZERS = {
    "adamw": ["--optimizer", "adamw"],
    "sgd": ["--optimizer", "sgd"],
    "momentum": ["--optimizer", "sgd", "--momentum", "0.9"],
}
SAVE_POINTS = ["after-file", "before-manifest", "before-rename", "before-latest", "before-prune"]


def same_checkpoint(trainer, a, b, step):
    one, two = (trainer.folder / out / "ckpt" / step for out in (a, b))
    names = sorted(os.listdir(one))
    expect(names == sorted(os.listdir(two)), f"{step}: other files in {a} and {b}")
    for name in names:
        expect((one / name).read_bytes() == (two / name).read_bytes(), f"{step}/{name} differs: {a}, {b}")


def prove(trainer):
    straight = trainer.run("straight")
    expect(straight.stdout.encode() == trainer.final("straight"), "stdout is not final.json")
    expect(trainer.steps("straight") == [f"step-{n:06}" for n in (25, 50, 75, 100)], "other steps")

    # the words of the page
    trainer.run("killed", failpoints="train/after-step=60*crash", status=CRASHED)
    expect(trainer.latest("killed") == "step-000050\n", f"LATEST is {trainer.latest('killed')!r}")
    expect(not (trainer.folder / "killed" / "final.json").exists(), "a killed run has a final.json")
    trainer.run("killed", "--resume", failpoints="train/after-step=51*crash")
    same_model("straight", "killed", trainer.folder)
    for step in trainer.steps("straight"):
        same_checkpoint(trainer, "straight", "killed", step)

    # at other steps: before the first checkpoint, on one, just behind one, at the last step, and before final.json
    for at in (1, 24, 25, 26, 99, 100):
        out = f"at{at}"
        trainer.run(out, failpoints=f"train/after-step={at}*crash", variable="TL_FAILPOINTS", status=CRASHED)
        trainer.verify(out)
        wanted = at // 25 * 25
        expect(trainer.latest(out) == (f"step-{wanted:06}\n" if wanted else None), f"{out}: LATEST")
        trainer.run(out, "--resume")
        same_model("straight", out, trainer.folder)
        same_checkpoint(trainer, "straight", out, "step-000100")

    # twice, and in pieces whose checkpoints lie elsewhere
    trainer.run("twice", failpoints="train/after-step=30*crash", status=CRASHED)
    trainer.run("twice", "--resume", failpoints="train/after-step=40*crash", status=CRASHED)
    expect(trainer.latest("twice") == "step-000050\n", f"LATEST is {trainer.latest('twice')!r}")
    trainer.run("twice", "--resume")
    same_model("straight", "twice", trainer.folder)
    trainer.run("pieces", failpoints="train/after-step=37*crash", status=CRASHED, every=7)
    trainer.run("pieces", "--resume", failpoints="train/after-step=21*crash", status=CRASHED, every=11)
    expect(trainer.latest("pieces") == "step-000055\n", f"LATEST is {trainer.latest('pieces')!r}")
    trainer.run("pieces", "--resume", "--keep", "1")
    same_model("straight", "pieces", trainer.folder)

    # from a step that is named, into another directory; another seed is another run
    trainer.run("branch", "--resume", "straight/ckpt/step-000075")
    same_model("straight", "branch", trainer.folder)
    trainer.run("seed", seed=8)
    expect(trainer.final("seed") != trainer.final("straight"), "the seed does not matter")


def kill_in_saves(trainer):
    trainer.run("straight", every=20, steps=60)
    count = 0
    for point in SAVE_POINTS:
        for at in range(1, 16):
            out = f"{point}-{at}"
            done = trainer.start(out, "--keep", "2", failpoints=f"save/{point}={at}*crash", every=20, steps=60)
            _, err = done.communicate(timeout=60)
            expect(done.returncode in (0, CRASHED), f"{out}: exit status {done.returncode}\n{err}")
            trainer.verify(out)
            if done.returncode == 0:
                break
            count += 1
            trainer.run(out, "--keep", "2", "--resume", every=20, steps=60)
            trainer.verify(out)
            same_model("straight", out, trainer.folder)
            # a kill before the last save's pruning leaves a step more: nothing is saved after it
            kept = 3 if f"{point}-{at}" == "before-prune-3" else 2
            expect(len(trainer.steps(out)) == kept, f"{out}: steps {trainer.steps(out)}")
            left = [name for name in os.listdir(trainer.folder / out / "ckpt") if name.endswith((".tmp", ".prev"))]
            expect(not left, f"{out}: left behind {left}")
    expect(count >= 3 * len(SAVE_POINTS), f"only {count} kills met a save")
    print(f"{count} kills inside of saves")


def declared(trainer, out):
    """The steps of the ckpt events so far; a crash cuts no line, as each is flushed whole."""
    path = trainer.folder / f"{out}.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [f"step-{e['step']:06}" for e in events if e["kind"] == "ckpt"]


def prove_async(trainer):
    trainer.run("straight", every=20)
    trainer.run("beside", "--async", "--progress", "beside.jsonl", every=20)
    same_model("straight", "beside", trainer.folder)
    wanted = [f"step-{n:06}" for n in (20, 40, 60, 80, 100)]
    expect(trainer.steps("beside") == wanted, f"steps {trainer.steps('beside')}")
    expect(declared(trainer, "beside") == wanted, f"ckpt events {declared(trainer, 'beside')}")
    for step in wanted:
        same_checkpoint(trainer, "straight", "beside", step)

    # a failed save ends the run at the latest with the next one, and what was declared stays
    done = trainer.run("failing", "--async", "--progress", "failing.jsonl", failpoints="save/before-manifest=2*error", status=75,
                       every=20)
    expect("save step 40: failpoint 'save/before-manifest'" in done.stderr, done.stderr)
    expect(declared(trainer, "failing") == trainer.steps("failing") == wanted[:1], f"steps {trainer.steps('failing')}")
    trainer.run("failing", "--resume", "--async", every=20)
    same_model("straight", "failing", trainer.folder)

    places = [f"train/after-step={at}*crash" for at in (1, 19, 20, 21, 45, 99, 100)]
    places += [f"save/{point}={at}*crash" for point in SAVE_POINTS for at in (1, 2, 5)]
    count = 0
    for i, place in enumerate(places):
        out = f"killed{i}"
        done = trainer.start(out, "--async", "--keep", "3", "--progress", f"{out}.jsonl", failpoints=place, every=20)
        _, err = done.communicate(timeout=60)
        expect(done.returncode in (0, CRASHED), f"{place}: exit status {done.returncode}\n{err}")
        count += done.returncode == CRASHED
        trainer.verify(out)
        told = declared(trainer, out)
        expect(not told or told[-1] in trainer.steps(out), f"{place}: {told[-1:]} was declared, {trainer.steps(out)} are there")
        if done.returncode == CRASHED:
            trainer.run(out, "--async", "--keep", "3", "--resume", every=20)
        trainer.verify(out)
        same_model("straight", out, trainer.folder)
        same_checkpoint(trainer, "straight", out, "step-000100")
    expect(count >= 20, f"only {count} kills met the run")
    print(f"{count} kills beside saves")


def main():
    with tempfile.TemporaryDirectory(prefix="pawl-proof-") as folder:
        if sys.argv[2] == "saves":
            kill_in_saves(Trainer(sys.argv[1], folder))
        elif sys.argv[2] == "async":
            prove_async(Trainer(sys.argv[1], folder))
        else:
            prove(Trainer(sys.argv[1], pathlib.Path(folder), OPTIMIZERS[sys.argv[2]]))


main()
