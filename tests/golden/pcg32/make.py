"""Turn the JSON vectors of the generator into lines that a C test reads with strtok: make.py VECTORS.json > vectors.txt

A line is: kind, seed, parameter, then the values. Doubles of uniform are hex texts (bit for bit); those of normal are the
17 digits of repr; child seeds and states are 16 hex digits.
"""
import json
import sys

data = json.load(open(sys.argv[1]))
out = []
for kind, key in (("next", "next_u32"), ("uniform", "uniform_f64_hex"), ("normal", "normal"), ("shuffle", "shuffle_10")):
    for seed, values in data[key].items():
        out.append([kind, seed, data["seq"]] + [v if isinstance(v, str) else repr(v) for v in values])
for seed, rows in data["below"].items():
    for n, values in rows.items():
        out.append(["below", seed, n] + values)
for seed, rows in data["child_seed"].items():
    for purpose, word in rows.items():
        out.append(["child", seed, purpose, word])
for seed, rows in data["stream_next_u32"].items():
    for purpose, values in rows.items():
        out.append(["stream", seed, purpose] + values)
for seed, words in data["state_after_1024"].items():
    out.append(["state", seed, data["seq"]] + words)
for row in out:
    print(*row)
