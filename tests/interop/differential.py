"""
Hold Pawl's `compat` verdict against the reference library's on generated and mutated headers, and the bytes that both write.

    build/peers/bin/python differential.py --library build/release/libpawl.so [--cases N] [--seed S]

Every case is a file in memory: a header made of entries (odd names, every dtype, any spelling of JSON, entries as arrays), changed in its
structure, in its text, in its length and in the size of the data. Both readers must accept or both refuse, must give the
same tensors with the same dtypes, shapes and bytes, and must fail at the same stage. One in 50 goes through a file, for the metadata.

One class is left out of the comparison of stages, not of verdicts: where two entries have the same data_offsets. The reference sorts the
entries of a hash map by their offsets; which of two equal ones it looks at first, and so whose fault it tells, changes from one run to
the next: of two tensors at 0..8, one of which is of another size, it says now "invalid offset" and now "invalid shape". Whatever the order,
one of them is at fault and the file is refused, so the verdicts must agree there too.
"""
import argparse
import json
import os
import random
import struct
import sys
import tempfile

import safetensors
from safetensors import TensorSpec, deserialize, safe_open, serialize

from pawl_ctypes import BITS, COMPAT, DTYPES, STRICT, Library

# What the reference says, by the beginning or a part of its text, to Pawl's codes of that stage.
STAGES = [
    ("header too small", {"too-short"}),
    ("header too large", {"header-too-large"}),
    ("invalid header length", {"header-truncated"}),
    ("invalid UTF-8", {"utf8"}),
    ("invalid JSON", {"json", "dtype", "duplicate-key"}),
    ("invalid offset", {"hole", "overlap"}),
    ("overflow", {"overflow"}),
    ("does not end up at a byte boundary", {"bits"}),
    ("invalid shape, data type, or offset", {"size"}),
    ("not fully covered", {"truncated", "trailing"}),
]
NAMES = ["a", "b", "w", "layer.0.weight", "layer.1.weight", "", "a\x00b", "é", "\n", "\x7f", "\"", "\\", "a/b", "\U0001f980",
         "\u202e", "__metadata", "__metadata___", "x" * 70, "\ud7ff", "\ue000", "\uffff"]
SPECIAL_LENGTHS = [640, 896, 1152, 1408, 35615, 23106, 8, 16, 10]  # pickle, gzip, bzip2 ... by their first bytes, and no more than that


def spell_string(rng, text, compact):
    """JSON of a text: as it is, or with escapes that mean the same."""
    if compact or rng.random() < 0.7:
        return json.dumps(text, ensure_ascii=False)
    out = []
    for ch in text:
        if rng.random() < 0.5:
            out.append(json.dumps(ch, ensure_ascii=False)[1:-1])
        elif ord(ch) > 0xFFFF:
            high, low = divmod(ord(ch) - 0x10000, 0x400)
            out.append("\\u%04x\\u%04X" % (0xD800 + high, 0xDC00 + low))
        else:
            out.append("\\u%04x" % ord(ch))
    return '"' + "".join(out) + '"'


def blank(rng, compact):
    return "" if compact or rng.random() < 0.8 else rng.choice([" ", "\t", "\n", "\r", "  "])


ODD_NUMBERS = ["2.0", "2e0", "-0", "-1", "02", "+2", "0x2", "1e400", "18446744073709551615", "18446744073709551616",
               "9223372036854775808", "4294967296", '"2"', "null", "true", "[]", "2.", ".5", "1e", "NaN", "00", "-"]
ODD_VALUES = ["null", "1", "1.5e3", "-1e-5", "1e308", "1e309", "-1e400", "0.1e1", "{}", "[]", '[{"a":[[]]}]', '"\\ud800"', '"\\ud83d\\ude00"',
              '"\\udc00\\ud800"', '"\\x"', '"\t"', "tru", "01", "{\"a\":1,\"a\":2}", "[1,]", "{,}", "1E+2", "-", "--1", "\"\\u12\"",
              "[" * 120 + "]" * 120, "[" * 124 + "]" * 124, "[" * 125 + "]" * 125, "[" * 126 + "]" * 126, "[" * 130 + "]" * 130]
BAD_DTYPES = ["f32", "F33", "", "F32 ", "F8_E4M3FN", "F8", "f8_e4m3", "BF17", "FLOAT"]


class Entry:
    def __init__(self, name, dtype, shape, begin, end):
        self.name, self.dtype, self.shape, self.begin, self.end = name, dtype, shape, begin, end


def make_entries(rng):
    entries = []
    at = 0
    for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3, 4, 7])):
        dtype = rng.choice(DTYPES)
        shape = [rng.choice([0, 1, 1, 2, 2, 3, 4, 8]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 5]))]
        count = 1
        for dim in shape:
            count *= dim
        if count * BITS[dtype] % 8 and rng.random() < 0.9:
            shape.append(4)
            count *= 4
        n = count * BITS[dtype] // 8
        entries.append(Entry(rng.choice(NAMES) if rng.random() < 0.5 else "t%d" % len(entries), dtype, shape, at, at + n))
        at += n
    if rng.random() < 0.3:
        rng.shuffle(entries)
    return entries, at


def change_entries(rng, entries):
    """One change of structure; most make the header wrong, some do not."""
    if not entries:
        return
    e = rng.choice(entries)
    other = rng.choice(entries)
    what = rng.randrange(11)
    if what == 0:
        e.name = other.name
    elif what == 1:
        e.begin, e.end = other.begin, other.end
    elif what == 2:
        e.begin, e.end = e.end, e.begin
    elif what == 3:
        e.begin += rng.choice([-1, 1, 8])
    elif what == 4:
        e.end += rng.choice([-1, 1, 8, 1 << 40])
    elif what == 5:
        e.dtype = rng.choice(DTYPES)
    elif what == 6:
        e.shape = e.shape + [rng.choice([0, 1, 2, 1 << 32, 1 << 62, (1 << 63) + 2, (1 << 64) - 1])]
    elif what == 7:
        e.shape = [rng.choice([0, 1 << 32, 1 << 63, (1 << 64) - 1])] + e.shape
    elif what == 8:
        e.shape = list(reversed(e.shape))
    elif what == 9:
        entries.append(Entry("zero", e.dtype, [0] + e.shape[:1], e.begin, e.begin))
    else:
        entries.append(Entry(e.name if rng.random() < 0.5 else "same", e.dtype, list(e.shape), e.begin, e.end))


def spell_number(rng, value):
    return rng.choice(ODD_NUMBERS) if rng.random() < 0.004 else str(value)


def spell_entry(rng, e, compact):
    def w():
        return blank(rng, compact)
    dtype = spell_string(rng, rng.choice(BAD_DTYPES) if rng.random() < 0.004 else e.dtype, compact)
    if rng.random() < 0.004:
        dtype = "{%s:null}" % dtype
    shape = "[" + w() + ",".join(w() + spell_number(rng, d) + w() for d in e.shape) + "]"
    offsets = [e.begin, e.end]
    if rng.random() < 0.004:
        offsets = offsets[:1] if rng.random() < 0.5 else offsets + [0]
    extent = "[" + ",".join(w() + spell_number(rng, d) + w() for d in offsets) + "]"
    if rng.random() < 0.01:
        items = [dtype, shape, extent]
        if rng.random() < 0.2:
            items.append("0")
        return "[" + ",".join(items) + "]"
    fields = [("dtype", dtype), ("shape", shape), ("data_offsets", extent)]
    if not compact and rng.random() < 0.3:
        rng.shuffle(fields)
    if rng.random() < 0.03:
        fields.insert(rng.randrange(4), (rng.choice(["extra", "", "Dtype", "dtype ", "é"]), rng.choice(ODD_VALUES)))
    if rng.random() < 0.005:
        fields.pop(rng.randrange(len(fields)))
    if rng.random() < 0.005:
        fields.append(rng.choice(fields))
    return "{" + ",".join(w() + spell_string(rng, k, compact) + w() + ":" + w() + v + w() for k, v in fields) + "}"


def spell_metadata(rng, compact):
    if rng.random() < 0.05:
        return rng.choice(["null", "{}", "[]", "1", '"x"', '{"a":1}', '{"a":null}', '{"a":"1","a":"2"}', '{"a":["b"]}', "{ }"])
    keys = [rng.choice(NAMES + ["format", "k1", "k2"]) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    return "{" + ",".join(spell_string(rng, k, compact) + ":" + spell_string(rng, rng.choice(NAMES), compact) for k in keys) + "}"


def change_bytes(rng, text):
    """A few bytes of the text changed, taken out, put in, or repeated."""
    text = bytearray(text)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(text) + 1)
        what = rng.randrange(5)
        if what == 0 and at < len(text):
            text[at] = rng.choice([rng.randrange(256), rng.choice(b'{}[]",:\\0123456789 \t\n')])
        elif what == 1 and at < len(text):
            del text[at:at + rng.choice([1, 1, 2, 8])]
        elif what == 2:
            text[at:at] = bytes([rng.choice(b'{}[]",:\\019eE+-. \n\0tfn') if rng.random() < 0.8 else rng.randrange(256)])
        elif what == 3:
            text[at:at] = text[at:at + rng.choice([1, 4, 16])]
        else:
            text[at:at] = rng.choice([b"\xef\xbb\xbf", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\xa6\x80", b"\xff",
                                      b"\\ud800", b"\\u0000", b"\xe2\x80\xae", b"/**/", b"//", b"\x00\x00"])
    return bytes(text)


def make_case(rng):
    """(bytes of a file, whether two entries have one extent)."""
    entries, data = make_entries(rng)
    if rng.random() < 0.5:
        for _ in range(rng.choice([1, 1, 2])):
            change_entries(rng, entries)
    compact = rng.random() < 0.6
    members = [spell_string(rng, e.name, compact) + blank(rng, compact) + ":" + blank(rng, compact) + spell_entry(rng, e, compact)
               for e in entries]
    if rng.random() < 0.4:
        for _ in range(2 if rng.random() < 0.02 else 1):
            members.insert(rng.randrange(len(members) + 1) if rng.random() < 0.3 else 0,
                           spell_string(rng, "__metadata__", compact) + ":" + spell_metadata(rng, compact))
    text = ("{" + blank(rng, compact) + ",".join(members) + blank(rng, compact) + "}").encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        text = rng.choice([b" ", b"\n\t\r", b"\xef\xbb\xbf", b"\0"]) + text
    if rng.random() < 0.35:
        text = change_bytes(rng, text)
    if rng.random() < 0.7:
        text += b" " * (-len(text) % 8)
    elif rng.random() < 0.2:
        text += rng.choice([b"\0" * 8, b"\n", b" \t\r\n", b"x", b" {}", b"\x0b"])
    if rng.random() < 0.02:
        want = rng.choice(SPECIAL_LENGTHS)
        text += b" " * max(0, want - len(text))
    length = len(text)
    if rng.random() < 0.02:
        length = max(0, length + rng.choice([-8, -1, 1, 8, 1 << 20, 1 << 62, 100000000, 100000001 - length, (1 << 64) - 1 - length]))
    if rng.random() < 0.08:
        data = max(0, data + rng.choice([-8, -1, 1, 8]))
    body = bytes(i * 7 & 255 for i in range(min(data, 1 << 16)))
    case = struct.pack("<Q", length & (1 << 64) - 1) + text + body
    if rng.random() < 0.02:
        case = case[:rng.randrange(len(case) + 1)]
    extents = [(e.begin, e.end) for e in entries]
    return case, len(set(extents)) != len(extents)


def ask_reference(case):
    """(None, tensors) or (message, None). What it panics over it refuses."""
    try:
        found = deserialize(case)
    except BaseException as e:  # a panic of its core is no Exception
        if isinstance(e, KeyboardInterrupt):
            raise
        return "%s" % e, None
    return None, {name.encode("utf-8", "surrogatepass"): (t["dtype"], t["shape"], bytes(t["data"])) for name, t in found}


def compare(library, case, shares_extent):
    """None, or how the two disagree. The second item counts verdicts by stage."""
    message, reference = ask_reference(case)
    code, tensors, _ = library.judge(case)
    if (message is None) != (code is None):
        return "reference: %s; Pawl: %s" % (message or "accepted", "%s: %s" % (code, tensors) if code else "accepted"), None
    if message is not None:
        stage = next((codes for part, codes in STAGES if part in message), None)
        if code != "not-safetensors" and (stage is None or code not in stage) and not shares_extent:
            return "reference: %s; Pawl: %s: %s" % (message, code, tensors), None
        return None, code
    begin = 8 + struct.unpack("<Q", case[:8])[0]
    ours = {name: (dtype, shape, case[begin + first:begin + last]) for name, (dtype, shape, first, last) in tensors.items()}
    if ours != reference:
        return "both accept, and read different tensors: %r, %r" % (reference, ours), None
    return None, "accepted"


def compare_metadata(library, case, path):
    with open(path, "wb") as f:
        f.write(case)
    code, tensors, metadata = library.judge(case)
    try:
        with safe_open(path, framework="np") as f:
            reference = f.metadata()
            names = sorted(f.keys())
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        return None if code is not None else "from a file the reference says %s" % e
    if code is not None:
        return "the reference reads it from a file, Pawl: %s" % code
    if reference is not None:
        reference = {k.encode(): v.encode() for k, v in reference.items()}
    if reference != metadata or names != sorted(n.decode() for n in tensors):
        return "metadata: %r, %r" % (reference, metadata)
    return None


# The names that the reference's writer has for dtypes; F6 it has none for.
WRITER_NAMES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "F16": "float16", "BF16": "bfloat16",
                "I32": "int32", "U32": "uint32", "F32": "float32", "F64": "float64", "I64": "int64", "U64": "uint64",
                "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
                "F8_E5M2FNUZ": "float8_e5m2fnuz", "C64": "complex64", "F4": "float4_e2m1fn_x2"}


def compare_writers(library, rng):
    import ctypes
    tensors = {}
    for _ in range(rng.choice([0, 1, 2, 3, 5, 9])):
        dtype = rng.choice(sorted(WRITER_NAMES))
        shape = [rng.choice([0, 1, 2, 3, 5]) for _ in range(rng.randrange(4))]
        if dtype == "F4":
            shape.append(rng.choice([0, 2, 4, 6]))
        count = 1
        for dim in shape:
            count *= dim
        name = rng.choice(NAMES) + rng.choice(["", "", "x", ".é", "\x1f", "\b\f\r\t"])
        tensors[name] = (dtype, shape, rng.randbytes(count * BITS[dtype] // 8))
    metadata = rng.choice([None, None, {}, {"format": "pt"}, {"é\n": "\x01\"\\"}])
    if not tensors and metadata == {}:
        metadata = None  # where the reference writes a header that it can't read
    keep = [ctypes.create_string_buffer(d, max(len(d), 1)) for _, _, d in tensors.values()]
    # of F4 that writer counts bytes along the last axis, the file values
    specs = {name: TensorSpec(dtype=WRITER_NAMES[dtype], shape=shape[:-1] + [shape[-1] // 2] if dtype == "F4" else shape, data_ptr=ctypes.addressof(memory), data_len=len(data))
             for (name, (dtype, shape, data)), memory in zip(tensors.items(), keep)}
    want = bytes(serialize(specs, metadata))
    got = library.save({k.encode(): v for k, v in tensors.items()},
                       None if metadata is None else {k.encode(): v.encode() for k, v in metadata.items()})
    return None if got == want else "writers differ: %r, %r, metadata %r" % (want, got, metadata)


def main():
    parser = argparse.ArgumentParser(description="Pawl's compat mode against the reference library")
    parser.add_argument("--library", required=True)
    parser.add_argument("--cases", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--shown", type=int, default=10, help="disagreements that are printed")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int(os.environ.get("PAWL_SEED") or random.SystemRandom().randrange(1 << 32))
    print("safetensors %s, %d cases, seed %d (--seed %d repeats them)" % (safetensors.__version__, args.cases, seed, seed), flush=True)
    library = Library(args.library)
    rng = random.Random(seed)
    counts = {}
    wrong = shared = strict_only = 0

    def tell(kind, number, what, case=None):
        nonlocal wrong
        wrong += 1
        if wrong <= args.shown:
            print("%s %d: %s\n    %s" % (kind, number, what, case.hex() if case is not None else ""))

    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.cases):
            case, shares_extent = make_case(rng)
            what, stage = compare(library, case, shares_extent)
            if what is not None:
                tell("case", number, what, case)
                continue
            counts[stage] = counts.get(stage, 0) + 1
            shared += shares_extent
            strict = library.judge(case, STRICT)[0]
            if strict is None and stage != "accepted":
                tell("case", number, "strict accepts what compat refuses", case)
            strict_only += strict is not None and stage == "accepted"
            if number % 50 == 0:
                what = compare_metadata(library, case, os.path.join(folder, "case.safetensors"))
                if what is not None:
                    tell("file", number, what, case)
    for number in range(max(1, args.cases // 20)):
        what = compare_writers(library, rng)
        if what is not None:
            tell("plan", number, what)
    print("verdicts: " + ", ".join("%s %d" % item for item in sorted(counts.items(), key=lambda item: -item[1])))
    print("%d cases with entries of one extent; %d that only strict refuses; %d plans written by both" %
          (shared, strict_only, max(1, args.cases // 20)))
    missing = [s for s in ("accepted", "json", "utf8", "hole", "overlap", "overflow", "bits", "size", "truncated", "trailing", "dtype")
               if args.cases >= 10000 and counts.get(s, 0) < 10]
    if missing:
        print("too few cases of: " + ", ".join(missing))
    if wrong:
        print("%d disagreements" % wrong)
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
