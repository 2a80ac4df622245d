"""Inputs for cases, from the format pages alone: nothing here uses Pawl.

fixture st FILE [NAME:DTYPE:SHAPE]... [--meta K=V]... [--nan NAME] [--cut N] [--tail N] [--header TEXT] [--many N]
fixture shard FILE [--ids N|a,b,c] [--version V] [--vocab N] [--magic M] [--count N] [--cut N] [--tail N]
fixture text FILE N          N bytes of something like text, the same on every machine
fixture flip FILE POSITION   invert the lowest bit of one byte (negative: from the end)
fixture config FILE          what config.json of a bigram must be
"""
import argparse
import json
import pathlib
import struct
import sys

BYTES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1, "F64": 8}
ORDER = ["BOOL", "U8", "F16", "BF16", "I32", "F32", "F64", "I64"]


def safetensors(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("tensors", nargs="*")
    parser.add_argument("--meta", action="append", default=[])
    parser.add_argument("--nan")
    parser.add_argument("--cut", type=int, default=0)
    parser.add_argument("--tail", type=int, default=0)
    parser.add_argument("--header")
    parser.add_argument("--many", type=int, default=0)
    options = parser.parse_args(words)
    header, data = {}, b""
    if options.meta:
        header["__metadata__"] = dict(pair.split("=", 1) for pair in options.meta)
    options.tensors += [f"many.{i:06d}:U8:0" for i in range(options.many)]
    rows = [tensor.rsplit(":", 2) for tensor in options.tensors]
    for name, dtype, shape in sorted(rows, key=lambda row: (-ORDER.index(row[1]), row[0].encode())):
        dims = [int(d) for d in shape.split("x") if d]
        n = 1
        for d in dims:
            n *= d
        values = bytes(i % 61 for i in range(n * BYTES[dtype]))
        if name == options.nan:
            values = values[:4] + struct.pack("<f", float("nan")) + values[8:]
        header[name] = {"dtype": dtype, "shape": dims, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = options.header.encode() if options.header is not None else json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    whole = struct.pack("<Q", len(text)) + text + data + bytes(options.tail)
    pathlib.Path(options.file).write_bytes(whole[:len(whole) - options.cut])


def shard(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--ids", default="100")
    parser.add_argument("--version", type=int, default=1)
    parser.add_argument("--vocab", type=int, default=256)
    parser.add_argument("--magic", type=int, default=20240520)
    parser.add_argument("--count", type=int)
    parser.add_argument("--cut", type=int, default=0)
    parser.add_argument("--tail", type=int, default=0)
    options = parser.parse_args(words)
    if "," in options.ids or options.ids == "":
        ids = [int(i) for i in options.ids.split(",") if i]
    else:
        ids = [(i * i + 3 * i) % 97 for i in range(int(options.ids))]
    n = len(ids) if options.count is None else options.count
    head = struct.pack("<iiii", options.magic, options.version, n, options.vocab) + bytes(1024 - 16)
    whole = head + struct.pack(f"<{len(ids)}{'I' if options.version == 2 else 'H'}", *ids) + bytes(options.tail)
    pathlib.Path(options.file).write_bytes(whole[:len(whole) - options.cut])


def text(words):
    state, out = 1, bytearray()
    while len(out) < int(words[1]):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out += b"the quick brown fox jumps over a lazy dog and runs away\n"[state >> 59 :: 1 + (state >> 40) % 3]
    pathlib.Path(words[0]).write_bytes(bytes(out[: int(words[1])]))


def flip(words):
    data = bytearray(pathlib.Path(words[0]).read_bytes())
    data[int(words[1])] ^= 1
    pathlib.Path(words[0]).write_bytes(bytes(data))


def config(words):
    value = {"tl_arch": "bigram", "tl_tokenizer": "bytes", "vocab_size": 256, "tl_format": 1}
    pathlib.Path(words[0]).write_text(json.dumps(value, indent=2) + "\n")


{"st": safetensors, "shard": shard, "text": text, "flip": flip, "config": config}[sys.argv[1]](sys.argv[2:])
