#!/usr/bin/env python3
"""Copy what Pawl's own form of token shards needs from a folder of reference files, and its JSON as tables.

    convert.py REFERENCE

REFERENCE has the files, manifest.json (what a reader must get of each, or why it must refuse) and vectors.json (windows
and cursors). The tables are tab-separated, so that the tests in C need no reader of JSON to check the reader of JSON:

    good.tsv       file, format, width, corpus or -, first id, one past the last, vocabulary in the header
    bad.tsv        file, reason, width that fits or -, position of the id or -, vocabulary of the caller or 0
    corpora.tsv    name, vocabulary, ids
    orders.tsv     row, seq_len, ids of each shard, seed or state:inc, files or -
    windows.tsv    row of orders, global window, shard, offset
    cursors.tsv    row of orders, global window, windows, pass, shard, offset, pcg_state, pcg_inc
    containers.tsv corpus, seq_len, seed, windows, sha256 of their ids as u32
"""
import json
import shutil
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
OWN = {"pawl-1", "pawl-2", "llmc-1"}
BASE_BAD = """empty header-1023 magic-plus-one version-0 version-3 count-minus-1 cut-1-byte cut-1-id cut-to-header
one-byte-more one-id-more one-byte-ids v1-wide-ids count-max v2-cut id-is-vocabulary v2-last-id vocabulary-negative
caller-vocabulary caller-vocabulary-ids eval-magic""".split()


def table(name, rows):
    with open(HERE / name, "w", newline="\n") as out:
        for row in rows:
            out.write("\t".join(str(x) for x in row) + "\n")


def join(values):
    return ",".join(str(v) for v in values)


def main():
    reference = Path(sys.argv[1])
    manifest = json.loads((reference / "manifest.json").read_text())
    vectors = json.loads((reference / "vectors.json").read_text())

    def copy(name):
        to = HERE / name
        to.parent.mkdir(exist_ok=True)
        shutil.copyfile(reference / name, to)

    def dash(value):
        return "-" if value is None else value

    corpora = {c["name"]: c for c in manifest["corpora"]}
    good = []
    for entry in manifest["good"]:
        if entry["format"] not in OWN:
            continue
        copy(entry["file"])
        header = (HERE / entry["file"]).read_bytes()[:16]
        n, vocabulary = struct.unpack("<ii", header[8:])
        good.append([entry["file"], entry["format"].replace("llmc", "pawl"), entry["width"], dash(entry["corpus"]),
                     entry.get("from", 0), entry.get("to", n), vocabulary])
    table("good.tsv", good)

    bad = []
    for entry in manifest["bad"]:
        if Path(entry["file"]).stem not in BASE_BAD or entry["format"] is not None:
            continue
        copy(entry["file"])
        bad.append([entry["file"], entry["reason"], dash(entry["fits_width"]), dash(entry["position"]),
                    entry["caller"].get("vocabulary", 0)])
    table("bad.tsv", bad)
    table("corpora.tsv", [[c["name"], c["vocabulary"], join(c["ids"])] for c in corpora.values()])

    orders, windows, cursors = [], [], []
    for row in vectors["orders"]:
        if row["order"] != "base-1":
            continue
        number = len(orders)
        generator = row.get("generator")
        orders.append([number, row["seq_len"], join(row["shards"]),
                       row["seed"] or generator["pcg_state"] + ":" + generator["pcg_inc"],
                       join(row["files"]) if "files" in row else "-"])
        windows += [[number] + w for w in row["windows"]]
        for c in row["cursors"]:
            (at,) = c["at"]
            cursors.append([number, c["window"]] + [at[k] for k in
                           ("windows", "pass", "shard", "offset", "pcg_state", "pcg_inc")])
    # documents of streams that are more than one source in its base order: to be refused by name
    for mixture in vectors["mixtures"]:
        copy(mixture["file"])
    table("orders.tsv", orders)
    table("windows.tsv", windows)
    table("cursors.tsv", cursors)
    table("containers.tsv", [[c["corpus"], c["seq_len"], c["seed"], c["count"], c["sha256"]]
                             for c in vectors["containers"] if c["order"] == "base-1"])


main()
