"""Every example of the help texts and of the man page works: examples.py PAWL SOURCE

Goal: a person who copies an example gets what it shows. Method: the files that examples name are made in an empty folder, each
those of one verb run in it by the shell, in their order, as a person would paste them; each must end with status 0. So do the man page's.
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

PAWL, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
# What an example can't do here: an ellipsis, a measurement of gigabytes (bench.py runs one of megabytes).
SKIPPED = re.compile(r" \.\.\. |^pawl bench ")
# What stands in the folder before a verb's examples, besides what furnish makes.
BEFORE = {
    "merge": "pawl shard model.safetensors model/ --max-shard-size 600 && rm model.safetensors",
    "index": "pawl shard model.safetensors model/ --max-shard-size 600",
    "generate": "pawl train bigram --data corpus.txt --out model && mv out run",
    "logits": "pawl train bigram --data corpus.txt --out model",
    "tokens pack": "rm -r data",
    "man": "rm -r data",
}


def shell(command, folder):
    environment = dict(os.environ, PATH=f"{folder}/.bin:{os.environ['PATH']}")
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def must(command, folder):
    done = shell(command, folder)
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout}")


def model(path, names):
    """A safetensors file of F32 [8, 8], from the format's page."""
    header = ",".join(f'"{name}":{{"dtype":"F32","shape":[8,8],"data_offsets":[{i * 256},{i * 256 + 256}]}}'
                      for i, name in enumerate(sorted(names)))
    text = f'{{"__metadata__":{{"format":"pt"}},{header}}}'.encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(256 * len(names)))


def furnish(top):
    """The files that examples name; those of commands are made by those commands."""
    (top / ".bin").mkdir()
    (top / ".bin/pawl").symlink_to(PAWL)
    layers = [f"model.layers.{i}.{part}" for i in range(2) for part in ("weight", "bias")]
    model(top / "model.safetensors", [*layers, "lm_head.weight"])
    model(top / "in.safetensors", ["module.a.weight", "module.a.bias"])
    (top / "models/v1").mkdir(parents=True)
    shutil.copy(top / "model.safetensors", top / "models/v1")
    must("sha256sum model.safetensors > SHA256SUMS", top / "models/v1")
    text = "".join(f"line {i} of a text, {i * i} and so on.\n" for i in range(400))
    (top / "corpus").mkdir()
    for name in ("corpus.txt", "corpus/a.txt", "corpus/b.txt"):
        (top / name).write_text(text)
    (top / "docs.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    (top / "ids.txt").write_text("1 2 3\n50256\n")
    golden = SOURCE / "tests/golden/llmcp35"
    shutil.copy(golden / "v1-selected-step8.bin", top / "run.llmcp35")
    shutil.copy(golden / "replay-fixture-trace.tsv", top / "trace.tsv")
    (top / "archive").mkdir()
    for name, script in (("ssh", 'shift; exec sh -c "$*"'), ("jq", "exec cat")):
        if name == "ssh" or shutil.which(name) is None:
            (top / ".bin" / name).write_text(f"#!/bin/sh\n{script}\n")
            (top / ".bin" / name).chmod(0o755)
    must("pawl tokens pack data/tok corpus/*.txt && cp data/tok/*.bin data/", top)
    must("pawl train bigram --method autograd --data data/tok --max-steps 600 --batch 1 --seq-len 4 --ckpt-every 100 --out out", top)



def lines(text):
    return [line.strip() for line in text.replace("\\\n", " ").strip().split("\n")]


def examples():
    for verb in re.findall(r"^  ([a-z0-9]+(?: [a-z]+)?)  +\S", shell(f"{PAWL} help", SOURCE).stdout, re.M):
        parts = shell(f"{PAWL} help {verb}", SOURCE).stdout.split("\nexamples:\n", 1)
        if len(parts) != 2:
            sys.exit(f"pawl help {verb} has no examples")
        yield verb, lines(parts[1])
    man = (SOURCE / "docs/man/pawl.1").read_text()
    part = re.search(r"^\.SH EXAMPLES\n\.nf\n(.*?)^\.fi", man, re.M | re.S)
    yield "man", lines(part[1].replace("\\-", "-").replace("\\e\n", "\\\n"))


def main():
    faults, n_run = [], 0
    with tempfile.TemporaryDirectory() as name:
        made = pathlib.Path(name) / "made"
        made.mkdir()
        furnish(made)
        for verb, commands in examples():
            top = pathlib.Path(name) / verb.replace(" ", "-")
            shutil.copytree(made, top, symlinks=True)
            must(BEFORE.get(verb, "true"), top)
            for command in commands:
                if SKIPPED.search(command):
                    continue
                done = shell(command.replace("/archive/", "archive/"), top)
                n_run += 1
                if done.returncode != 0:
                    faults.append(f"{verb}: {command}\n  status {done.returncode}: {done.stdout.strip()[-600:]}")
    if n_run < 50:
        faults.append(f"only {n_run} examples were found")
    print(f"{n_run} examples")
    sys.exit("\n".join(faults) if faults else 0)


main()
