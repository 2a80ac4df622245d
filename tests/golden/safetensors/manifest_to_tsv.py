#!/usr/bin/env python3
"""Turns files/manifest.json into files/manifest.tsv, which the C tests read.

    python3 manifest_to_tsv.py

Rows, tab-separated; strings of the files (names, keys, values) as hex of their UTF-8 bytes, "-" for nothing:
    file     <path> <size> <sha256> <expect> <canonical: 1, 0> <header length or -> <metadata: absent, present>
    meta     <key> <value>                        of the file above
    tensor   <name> <dtype> <shape, as 2x3, or -> <begin> <end>    of the file above, in file order
"""
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent / "files"


def text(s):
    return s.encode().hex() or "-"


def rows(entries):
    for e in entries:
        if not e["file"].endswith(".safetensors"):
            continue
        yield ["file", e["file"], e["size"], e["sha256"], e["expect"], int(bool(e.get("canonical"))), e.get("header_length") or "-",
               "absent" if e.get("metadata") is None else "present"]
        for key, value in (e.get("metadata") or {}).items():
            yield ["meta", text(key), text(value)]
        for t in e.get("tensors", []):
            yield ["tensor", text(t["name"]), t["dtype"], "x".join(map(str, t["shape"])) or "-", *t["offsets"]]


entries = json.loads((HERE / "manifest.json").read_text())["files"]
with open(HERE / "manifest.tsv", "w", newline="\n") as f:
    for row in rows(entries):
        f.write("\t".join(map(str, row)) + "\n")
