#!/usr/bin/env python3
"""Makes the vectors beside it with Python's own json and float: python3 make.py

doubles.tsv    <bits, 16 hex digits> <json.dumps of the double>
decimals.tsv   <bits> <a decimal text that must be read as them; "inf" for bits: out of range>
strings.tsv    <UTF-8 in hex> <json.dumps ensure_ascii=False, in hex> <ensure_ascii=True>
documents.tsv  <compact text in hex> <indent=2, ensure_ascii=False, in hex> <one line, in hex> <compact with sorted keys, in hex>
"""
import json
import math
import pathlib
import random
import struct
from fractions import Fraction

HERE = pathlib.Path(__file__).resolve().parent
R = random.Random(20240611)


def bits(x):
    return "%016x" % struct.unpack("<Q", struct.pack("<d", x))[0]


def unbits(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


def doubles():
    out = [0.0, -0.0, 1.0, 0.1, 0.2, 0.3, 1 / 3, 1e15, 1e16, 123456789012345680.0, 1e-4, 1e-5, 0.00012345, 6e-05, 5e-324, 1.7976931348623157e308,
           2.2250738585072014e-308, 2.225073858507201e-308, 1e22, 1e23, 9007199254740991.0, 9007199254740992.0, 9007199254740993.0, 4.35, 0.5, 100.0, 1e21]
    out += [-x for x in out]
    for e in range(-1074, 1024):  # powers of two, where the interval is lopsided
        out.append(math.ldexp(1.0, e))
    for e in range(-1074, 1024, 7):
        v = math.ldexp(1.0, e)
        out += [math.nextafter(v, 0), math.nextafter(v, math.inf)]
    for e in range(-323, 309, 3):
        v = float("1e%d" % e)
        out += [v, math.nextafter(v, 0), -math.nextafter(v, math.inf)]
    while len(out) < 6000:
        x = unbits(R.getrandbits(64))
        if math.isfinite(x):
            out.append(x)
    for _ in range(1500):
        out.append(round(R.uniform(-1e6, 1e6), R.randrange(0, 12)))
        out.append(float(R.randrange(1 << R.randrange(1, 70))))
    return out


def exact(f):
    """A dyadic fraction as digits and exponent."""
    k = f.denominator.bit_length() - 1
    return str(f.numerator * 5**k), -k


def decimals():
    """Texts at, just below and just above the midpoint of two doubles, short and with hundreds of digits; and the edges of the range."""
    out = []
    for i in range(60):
        x = abs(unbits(R.getrandbits(64))) if i % 3 else math.ldexp(R.getrandbits(R.randrange(1, 54)), -1074)
        if not math.isfinite(x) or x > 1.7e308:
            continue
        digits, e = exact((Fraction(x) + Fraction(math.nextafter(x, math.inf))) / 2)
        out += ["%se%d" % (digits, e), "%d1e%d" % (int(digits), e - 1), "%d9e%d" % (int(digits) - 1, e - 1), "%s%s1e%d" % (digits, "0" * 800, e - 801)]
        if i % 10 == 0:
            out.append(digits[0] + "." + (digits[1:] or "0") + "E+%d" % (e + len(digits) - 1) if e + len(digits) > 0 else "0." + "0" * 30 + digits + "e%d" % (e + len(digits) + 30))
    out += ["0e99999999999999999999", "1e-99999999999999999999", "0.0e-5", "0." + "0" * 400 + "1e500", "1" + "0" * 400 + "e-200", "9" * 308, "1.7976931348623158e308", "2.4703282292062327e-324",
            "2.4703282292062328e-324", "1e-400", "123456789012345678901234567890", "0.1e1", "1E5", "1e+5", "-1e-0"]
    halfway = str((2**1024 - 2**970))
    out += [halfway[:-1] + "0", str(2**1024 - 2**970 - 1), halfway, "9" * 309, "9" * 400, "1e309", "-1e309", "1e99999999999999999999", "1.7976931348623159e308", "1" + "0" * 600 + "e-200"]
    return out


def strings():
    out = ["", "a", "\"\\/", "".join(map(chr, range(0x20))), "\x7f\x80\x9f", "\u00e9\u6f22\u2028\u2029", "\U0001f600\U0010ffff\uffff\ufffd", "a" * 100 + "\n" + "b" * 33, "x" * 15 + '"', "x" * 16 + "\\",
           "\u07ff\u0800\ud7ff\ue000"]
    pool = [chr(c) for c in list(range(128)) + [0xe9, 0x7ff, 0x800, 0xffff, 0x10000, 0x1f600]]
    for _ in range(200):
        out.append("".join(R.choice(pool) for _ in range(R.randrange(40))))
    return out


def value(depth):
    kind = R.randrange(8 if depth < 5 else 6)
    if kind == 0:
        return R.choice([None, True, False])
    if kind == 1:
        return R.randrange(-10**6, 10**6)
    if kind == 2:
        return R.choice([0.5, 1e-5, 1e16, -0.0, 3.25])
    if kind in (3, 4, 5):
        return R.choice(["", "text", "\u00e9\n", "\U0001f600"])
    if kind == 6:
        return [value(depth + 1) for _ in range(R.randrange(5))]
    return {R.choice("abcdefgh") * R.randrange(4) + str(i): value(depth + 1) for i in range(R.randrange(5))}


def documents():
    return [None, True, [], {}, [[]], {"a": {}}, {"a": []}, [1], {"b": 1, "a": [2, {"d": None, "c": "x"}]}, "s", 7] + [value(0) for _ in range(100)] + [{"k%d" % (i * 7 % 40): i for i in range(40)}]


def write(name, rows):
    with open(HERE / name, "w", newline="\n") as f:
        for row in rows:
            f.write("\t".join(row) + "\n")


def hexed(s):
    return s.encode().hex() or "-"


write("doubles.tsv", ((bits(x), json.dumps(x)) for x in doubles()))
write("decimals.tsv", (("inf" if math.isinf(float(t)) else bits(float(t)), t) for t in decimals()))
write("strings.tsv", ((hexed(s), hexed(json.dumps(s, ensure_ascii=False)), json.dumps(s)) for s in strings()))
write("documents.tsv", ((hexed(json.dumps(d, ensure_ascii=False, separators=(",", ":"))), hexed(json.dumps(d, ensure_ascii=False, indent=2)), hexed(json.dumps(d, ensure_ascii=False)),
                         hexed(json.dumps(d, ensure_ascii=False, separators=(",", ":"), sort_keys=True))) for d in documents()))
