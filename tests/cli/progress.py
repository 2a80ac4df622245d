"""The progress file: progress.py PAWL

Goal: what other programs read is what the schema says, in the order of what happened, and `ckpt` only when it is durable. Method: the
schema's rules are written out here; a crash just before a checkpoint is declared must leave no event of it.
"""
import json
import math
import pathlib
import sys
import tempfile

from trainer import CRASHED, Trainer, expect

TYPES = {"ts": (int, float), "kind": str, "step": int, "loss": (int, float), "lr": (int, float), "tokens": int, "ckpt": str,
         "name": str, "value": (int, float), "outputs": list}
REQUIRED = {"step": ["step"], "ckpt": ["ckpt", "step"], "metric": ["name", "value"], "done": []}


def refuse_constant(text):
    sys.exit(f"not JSON: {text}")


def read(path):
    text = path.read_text()
    expect(text.endswith("\n"), "the last line has no end")
    events = [json.loads(line, parse_constant=refuse_constant) for line in text.splitlines()]
    for event in events:
        kind = event.get("kind")
        expect(kind in REQUIRED, f"kind {kind!r}")
        for key in ["ts", *REQUIRED[kind]]:
            expect(key in event, f"{kind} without {key}: {event}")
        for key, value in event.items():
            expect(key in TYPES and isinstance(value, TYPES[key]) and not isinstance(value, bool), f"{key}: {value!r}")
            if isinstance(value, float):
                expect(math.isfinite(value), f"{key}: {value}")
        for key in ("step", "tokens", "lr"):
            expect(event.get(key, 0) >= 0, f"{key}: {event}")
        expect(all(isinstance(item, str) for item in event.get("outputs", [])), f"outputs: {event}")
    return events


def without_time(events):
    return [{k: v for k, v in e.items() if k not in ("ts", "value")} for e in events]


def main():
    with tempfile.TemporaryDirectory(prefix="pawl-progress-") as folder:
        trainer = Trainer(sys.argv[1], folder)
        log = pathlib.Path(folder) / "p.jsonl"
        trainer.run("a", "--progress", "p.jsonl", steps=10, every=4)
        events = read(log)
        order = [(e["kind"], e.get("step")) for e in events]
        wanted = []
        for step in range(1, 11):
            wanted += [("step", step)] + [("ckpt", step)] * (step in (4, 8, 10))
        expect(order[:-2] == wanted and [kind for kind, _ in order[-2:]] == ["metric", "done"], f"order {order}")
        expect([e["tokens"] for e in events if e["kind"] == "step"] == [256 * n for n in range(1, 11)], "tokens")
        expect(all((trainer.folder / e["ckpt"]).is_dir() for e in events if e["kind"] == "ckpt"), "a ckpt that is not there")
        final = json.loads(trainer.final("a"))
        expect([e["loss"] for e in events if e["kind"] == "step"][-1] == final["loss"], "the loss of the last step")
        expect(events[-1]["outputs"] == ["a/config.json", "a/model.safetensors", "a/final.json"], f"{events[-1]}")
        expect(events == sorted(events, key=lambda e: e["ts"]), "times go back")

        # what was not declared durable has no event, also when its directory is there
        crash = pathlib.Path(folder) / "c.jsonl"
        trainer.run("c", "--progress", "c.jsonl", steps=10, every=4, failpoints="save/before-latest=2*crash", status=CRASHED)
        events = read(crash)
        expect([e["step"] for e in events if e["kind"] == "ckpt"] == [4], f"{events}")
        expect(events[-1]["kind"] == "step" and events[-1]["step"] == 8, f"{events[-1]}")

        # a resumed run appends, and its steps are those of the straight one
        trainer.run("c", "--progress", "c.jsonl", "--resume", steps=10, every=4)
        resumed = without_time(read(crash)[len(events):])
        straight = [e for e in without_time(read(log)) if e.get("step", 0) > resumed[0]["step"] - 1]
        for e in straight + resumed:
            e.pop("outputs", None)
            e.pop("ckpt", None)
        expect(resumed == straight, f"{resumed}\n{straight}")

        # a file that can't be written to is an error, not silence
        trainer.run("d", "--progress", "/dev/full", steps=2, every=4, status=75)
        trainer.run("e", "--progress", "no/such/p", steps=2, every=4, status=1)


main()
