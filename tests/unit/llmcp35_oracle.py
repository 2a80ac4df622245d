"""A second decoder of LLMCP35, slow and plain, held against the library's verdicts on files with faults.

llmcp35_oracle.py VERDICTS [CASES [SEED]]: run from the top of the tree. Makes CASES files from the golden ones by a seeded choice of
edits (bits, fields, records, groups, several at once; checksums put right), asks both, and stops at the first difference in
category, cause or values."""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path("tests/golden/llmcp35")
U64, U32 = 2**64, 2**32
SIZES = {1: 1, 2: 4, 3: 8}
CAP = (2**63 - 1) // 8


class Fault(Exception):
    def __init__(self, category, cause=None, **fields):
        super().__init__(category, cause)
        self.category, self.cause, self.fields = category, cause, fields


def fnv(data):
    h = 0xCBF29CE484222325
    for i, b in enumerate(data):
        h = (h ^ (0 if 30 <= i < 38 else b)) * 0x100000001B3 % U64
    return h


def real(value):
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n, where):
        if len(self.data) - self.at < n:
            raise Fault("truncated", where=where)
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, n, where):
        return int.from_bytes(self.take(n, where), "little")

    def real(self, where):
        return struct.unpack("<d", self.take(8, where))[0]

    def str(self, where):
        data = self.take(self.number(4, where), where)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise Fault("invalid_utf8", where=where) from None

    def names(self, where):
        return [self.str(where) for _ in range(self.number(4, where))]


def by_bytes(names):
    return sorted(names, key=lambda name: name.encode())


def unit(x):
    return math.isfinite(x) and 0 <= x < 1


def stage_a(data):
    if len(data) < 38:
        raise Fault("truncated", where="fixed_header")
    if data[:8] != b"LLMCP35\0":
        raise Fault("bad_magic")
    version, marker, header, payload, stored = struct.unpack("<HIQQQ", data[8:38])
    if version != 1:
        raise Fault("unsupported_version", found=version)
    if marker != 0x01020304:
        raise Fault("unsupported_endianness", found=marker)
    if header < 38 or header + payload >= U64 or header + payload != len(data):
        raise Fault("file_extent", header=header, payload=payload, actual=len(data))
    if fnv(data) != stored:
        raise Fault("checksum_mismatch", stored=stored, computed=fnv(data))
    return header


def check_adamw(rate, b1, b2, eps, wd):
    for cause, value, fine in (("learning_rate", rate, math.isfinite(rate) and rate > 0), ("beta1", b1, unit(b1)),
                               ("beta2", b2, unit(b2)), ("epsilon", eps, math.isfinite(eps) and eps > 0),
                               ("weight_decay", wd, math.isfinite(wd) and wd >= 0)):
        if not fine:
            raise Fault("adamw_config", "invalid_" + cause, value=real(value))
    if wd != 0 and not (math.isfinite(rate * wd) and 0 < rate * wd < 1):
        raise Fault("adamw_config", "invalid_decay_product", learning_rate=real(rate), weight_decay=real(wd),
                    product=real(rate * wd))


def check_groups(decay, no_decay):
    for group, names in (("decay", decay), ("no_decay", no_decay)):
        seen = set()
        for name in names:
            if not name:
                raise Fault("adamw_config", "empty_grouped_parameter_name", group=group)
            if name in seen:
                raise Fault("adamw_config", "duplicate_grouped_parameter", group=group, name=name)
            seen.add(name)
    if not decay and not no_decay:
        raise Fault("adamw_config", "empty_parameter_groups")
    both = by_bytes(set(decay) & set(no_decay))
    if both:
        raise Fault("adamw_config", "parameter_in_multiple_groups", name=both[0])


def stage_b(data):
    c, s = Cursor(data), {}
    found = c.number(2, "tokenizer_layout")
    if found != 1:
        raise Fault("unsupported_tokenizer_layout", found=found)
    found = c.number(2, "rng_algorithm")
    if found != 1:
        raise Fault("unsupported_rng_algorithm", found=found)
    s["selected"], s["rng"] = c.number(8, "selected_step"), c.number(8, "rng_state")
    s["kind"] = c.number(1, "tokenizer_kind")
    if s["kind"] not in (1, 2):
        raise Fault("unknown_tokenizer_kind", tag=s["kind"])
    s["tv"] = c.number(8, "tokenizer_vocabulary")
    s["config"] = [c.number(8, "decoder_" + w) for w in ("vocabulary", "width", "heads", "ffn_width", "layers", "positions")]
    s["base"], s["rms"] = c.real("rope_base"), c.real("rms_epsilon")
    s["adamw"] = [c.real("adamw_" + w) for w in ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay")]
    check_adamw(*s["adamw"])
    flag = c.number(1, "groups_flag")
    if flag > 1:
        raise Fault("non_canonical", "groups_flag", flag=flag)
    s["groups"] = (c.names("decay_names"), c.names("no_decay_names")) if flag else None
    if flag:
        check_groups(*s["groups"])
    s["step"], s["p1"], s["p2"] = c.number(8, "adamw_step"), c.real("beta1_power"), c.real("beta2_power")
    s["np"], s["nm"], n = (c.number(4, w + "_count") for w in ("parameter", "moment", "record"))
    s["records"] = []
    for _ in range(n):
        role = c.number(1, "record_role")
        if not 1 <= role <= 5:
            raise Fault("unknown_role", tag=role)
        name = c.str("record_name")
        if not name:
            raise Fault("layout", "empty_name")
        dtype = c.number(1, "record_dtype")
        if dtype not in SIZES:
            raise Fault("unknown_dtype", tag=dtype)
        rank = c.number(4, "record_rank")
        shape = []
        for _ in range(rank):
            shape.append(c.number(8, "record_dim"))
        s["records"].append((role, name, dtype, shape, c.number(8, "record_offset"), c.number(8, "record_length")))
    if c.at != len(data):
        raise Fault("non_canonical", "header_tail", remaining=len(data) - c.at)
    return s


def stage_c_d(s, header, size):
    end, seen = header, set()
    for role, name, dtype, shape, offset, length in s["records"]:
        if (role, name) in seen:
            raise Fault("layout", "duplicate_record", role=role, name=name)
        seen.add((role, name))
        n = 1
        for dim in [*shape, SIZES[dtype]]:
            n *= dim
            if n >= U64:
                raise Fault("size_overflow", where="shape_bytes")
        if length != n:
            raise Fault("layout", "byte_length", name=name, declared=length, computed=n)
        if offset != end:
            raise Fault("layout", "offset", name=name, found=offset, expected=end)
        end += n
        if end >= U64:
            raise Fault("layout", "end_overflow", name=name)
    if end != size:
        raise Fault("layout", "final_end", end=end, size=size)
    tokens = s["tv"] if s["kind"] == 1 else 1
    if tokens + s["np"] >= U64:
        raise Fault("size_overflow", where="model_boundary")
    total = tokens + s["np"] + 2 * s["nm"]
    if total >= U64:
        raise Fault("size_overflow", where="optimizer_boundary")
    if total != len(s["records"]):
        raise Fault("layout", "record_count", found=len(s["records"]), expected=total)
    return tokens


def identity(record, name, role, dtype):
    if record[:3] != (role, name, dtype):
        raise Fault("layout", "record_identity", name=record[1], role=record[0], dtype=record[2], expected_name=name,
                    expected_role=role, expected_dtype=dtype)


def stage_e(s, data, records):
    if s["kind"] == 1:
        for i, r in enumerate(records):
            identity(r, str(i), 1, 1)
            if len(r[3]) != 1 or r[3][0] == 0:
                raise Fault("layout", "token_shape", id=i)
        if not records:
            raise Fault("tokenizer", "empty")
        seen = set()
        for i, r in enumerate(records):
            spelling = data[r[4]:r[4] + r[5]]
            if spelling in seen:
                raise Fault("tokenizer", "repeated_spelling", id=i)
            seen.add(spelling)
        n = len(records)
    else:
        r = records[0]
        identity(r, "training-pairs", 2, 2)
        if len(r[3]) != 2 or r[3][1] != 2:
            raise Fault("layout", "pair_shape", shape=r[3])
        words = struct.unpack(f"<{2 * r[3][0]}I", data[r[4]:r[4] + r[5]])
        seen = set()
        for rank in range(r[3][0]):
            pair = words[2 * rank:2 * rank + 2]
            for token in pair:
                if token >= 256 + rank:
                    raise Fault("bpe", "unknown_merge_operand", rank=rank, token_id=token)
            if pair in seen:
                raise Fault("bpe", "duplicate_merge_pair", rank=rank, left=pair[0], right=pair[1])
            seen.add(pair)
        n = 258 + r[3][0]
    if n != s["tv"]:
        raise Fault("vocabulary_mismatch", tokenizer=n, decoder=s["tv"])
    return n


def values_of(data, record):
    return struct.unpack(f"<{record[5] // 8}d", data[record[4]:record[4] + record[5]])


def check_name(name):
    data = name.encode()
    for i, b in enumerate(data):
        if b == ord("."):
            if i == 0 or data[i - 1] == ord("."):
                raise Fault("parameter", "empty_name_segment", index=i)
        elif not (ord("a") <= b <= ord("z") or ord("0") <= b <= ord("9") or b == ord("_")):
            raise Fault("parameter", "invalid_name_character", index=i, byte=b)
    if data.endswith(b"."):
        raise Fault("parameter", "empty_name_segment", index=len(data))


def model_names(layers):
    yield "token_embedding.weight"
    for l in range(layers):
        for rest in ("attention_norm.gain", "attention.query.weight", "attention.key.weight", "attention.value.weight",
                     "attention.output.weight", "ffn_norm.gain", "ffn.gate.weight", "ffn.up.weight", "ffn.down.weight"):
            yield f"blocks.{l}.{rest}"
    yield "final_norm.gain"


def model(cause, **fields):
    raise Fault("model", cause, **fields)


def frequency(base, pair, h):
    try:
        return math.pow(base, (-2.0 * pair) / h)
    except OverflowError:
        return math.inf


def rotary(base, positions, h, layer):
    pairs = h // 2
    if positions * pairs >= U64:
        model("block_attention_rotary_table_overflow", layer=layer, positions=positions, pairs=pairs)
    if pairs > CAP:
        model("block_attention_rotary_table_allocation", layer=layer, elements=pairs)
    for pair in range(pairs):
        if not math.isfinite(frequency(base, pair, h)):
            model("block_attention_rotary_non_finite", layer=layer, position=0, pair=pair)
    if positions * pairs > CAP:
        model("block_attention_rotary_table_allocation", layer=layer, elements=positions * pairs)
    first = None
    for pair in range(pairs):
        f = frequency(base, pair, h)
        if math.isfinite(float(positions - 1) * f):
            continue
        low, high = 0, positions - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if math.isfinite(float(middle) * f) else (low, middle)
        if first is None or (low, pair) < first:
            first = (low, pair)
    if first is not None:
        model("block_attention_rotary_non_finite", layer=layer, position=first[0], pair=first[1])


def matrix(layer, which, shape, prefix):
    named = {"layer": layer, **({"which": which} if which else {})}
    if len(shape) != 2:
        model(prefix + "_rank", **named, rank=len(shape))
    if shape[0] == 0:
        model(prefix + "_zero_input", **named)
    if shape[1] == 0:
        model(prefix + "_zero_output", **named)


def gain(layer, shape, rank_cause, empty_cause):
    if len(shape) != 1:
        model(rank_cause, layer=layer, shape=shape)
    if shape[0] == 0:
        model(empty_cause, layer=layer)


def check_layer(l, shapes, config, base, remember):
    V, D, H, F, L, P = config
    an, q, k, v, o, fn, g, u, d = shapes
    gain(l, an, "block_attention_norm_rank", "block_attention_norm_empty")
    for which, shape in (("query", q), ("key", k), ("value", v)):
        matrix(l, which, shape, "block_attention_projection")
    for side, cause in ((0, "block_attention_input_widths"), (1, "block_attention_output_widths")):
        if not q[side] == k[side] == v[side]:
            model(cause, layer=l, query=q[side], key=k[side], value=v[side])
    matrix(l, None, o, "block_attention_output")
    W = q[0]
    if W % H:
        model("block_attention_width_not_divisible", layer=l, width=W, heads=H)
    if W // H % 2:
        model("block_attention_odd_head_width", layer=l, head_width=W // H)
    for cause, found in (("block_attention_projected_width", q[1]), ("block_attention_output_input_width", o[0]),
                         ("block_attention_output_width", o[1])):
        if found != W:
            model(cause, layer=l, expected=W, actual=found)
    rotary(base, P, W // H, l)
    gain(l, fn, "block_ffn_norm_rank", "block_ffn_norm_empty")
    for which, shape in (("gate", g), ("up", u), ("down", d)):
        matrix(l, which, shape, "block_ffn_projection")
    for side, cause in ((0, "block_ffn_input_widths"), (1, "block_ffn_hidden_widths")):
        if g[side] != u[side]:
            model(cause, layer=l, gate=g[side], up=u[side])
    if d[0] != g[1]:
        model("block_ffn_down_input", layer=l, expected=g[1], actual=d[0])
    for component, found in (("attention_norm", an[0]), ("ffn_norm", fn[0]), ("ffn_gate", g[0]), ("ffn_down", d[1])):
        if found != W:
            model("block_component_width", layer=l, component=component, expected=W, actual=found)
    if W != D:
        remember("block_width_mismatch", layer=l, expected=D, actual=W)
    elif g[1] != F:
        remember("block_feed_forward_width_mismatch", layer=l, expected=F, actual=g[1])


def stage_f(s, data, records):
    if not records:
        raise Fault("layout", "no_parameters")
    for r in records:
        role, name, dtype, shape = r[:4]
        if (role, dtype) != (3, 3):
            raise Fault("layout", "parameter_identity", name=name, role=role, dtype=dtype)
        stride = 1
        for dim in reversed(shape):
            stride *= dim
            if stride >= U64:
                raise Fault("tensor", "shape_overflow")
        check_name(name)
        for i, value in enumerate(values_of(data, r)):
            if not math.isfinite(value):
                raise Fault("parameter", "non_finite_value", index=i, value=real(value), name=name)
    V, D, H, F, L, P = s["config"]
    if V == 0:
        model("empty_vocabulary")
    if D == 0:
        model("zero_width")
    if H == 0:
        model("zero_heads")
    if D % H:
        model("width_not_divisible", width=D, heads=H)
    if D // H % 2:
        model("odd_head_width", head_width=D // H)
    if F == 0:
        model("zero_feed_forward")
    if P == 0:
        model("zero_positions")
    if not (math.isfinite(s["base"]) and s["base"] > 0):
        model("invalid_rope_base", value=real(s["base"]))
    if not (math.isfinite(s["rms"]) and s["rms"] >= 0):
        model("invalid_rms_epsilon", value=real(s["rms"]))
    if 9 * L + 2 >= U64:
        model("parameter_allocation")
    if 9 * L + 2 != len(records):
        model("parameter_count_mismatch", expected=9 * L + 2, actual=len(records))
    for i, (expected, r) in enumerate(zip(model_names(L), records)):
        if expected != r[1]:
            model("parameter_name_mismatch", index=i, expected=expected, actual=r[1])
    kept = []

    def remember(cause, **fields):
        kept.append((cause, fields))

    e = records[0][3]
    if len(e) != 2:
        model("embedding_rank", rank=len(e))
    if e[0] == 0:
        model("embedding_empty_vocabulary")
    if e[1] == 0:
        model("embedding_zero_width")
    if e[0] != V:
        remember("embedding_vocabulary_mismatch", expected=V, actual=e[0])
    elif e[1] != D:
        remember("embedding_width_mismatch", expected=D, actual=e[1])
    for l in range(L):
        check_layer(l, [r[3] for r in records[1 + 9 * l:10 + 9 * l]], s["config"], s["base"], remember)
    last = records[-1][3]
    if len(last) != 1:
        model("final_norm_rank", shape=last)
    if last[0] == 0:
        model("final_norm_empty")
    if last[0] != D:
        remember("final_norm_width_mismatch", expected=D, actual=last[0])
    if kept:
        model(kept[0][0], **kept[0][1])


def stage_g(s, data, records):
    names = []
    for a, b in zip(records[::2], records[1::2]):
        identity(a, a[1], 4, 3)
        identity(b, a[1], 5, 3)
        if a[3] != b[3]:
            raise Fault("layout", "moment_shapes", name=a[1], first=a[3], second=b[3])
        for kind, r in (("first", a), ("second", b)):
            for i, value in enumerate(values_of(data, r)):
                if not math.isfinite(value):
                    raise Fault("adamw_state", "non_finite_moment", name=a[1], kind=kind, index=i, value=real(value))
        for i, value in enumerate(values_of(data, b)):
            if value < 0:
                raise Fault("adamw_state", "negative_second_moment", name=a[1], index=i, value=real(value))
        names.append(a[1])
    for which, power in (("beta1", s["p1"]), ("beta2", s["p2"])):
        if not (power == 1.0 if s["step"] == 0 else unit(power)):
            raise Fault("adamw_state", "invalid_beta_power", which=which, value=real(power), step=s["step"])
    if (s["step"] == 0) != (not names):
        raise Fault("adamw_state", "state_presence", step=s["step"], entries=len(names))
    if s["groups"] and s["step"] > 0:
        union = by_bytes(s["groups"][0] + s["groups"][1])
        if union != by_bytes(names):
            raise Fault("adamw_state", "parameter_groups_mismatch", expected=union, actual=by_bytes(names))
    return names


def decode(data):
    header = stage_a(data)
    s = stage_b(data[38:header])
    tokens = stage_c_d(s, header, len(data))
    records = s["records"]
    parameters, moments = records[tokens:tokens + s["np"]], records[tokens + s["np"]:]
    n = stage_e(s, data, records[:tokens])
    stage_f(s, data, parameters)
    names = stage_g(s, data, moments)
    if n != s["config"][0]:
        raise Fault("vocabulary_mismatch", tokenizer=n, decoder=s["config"][0])
    if s["selected"] != s["step"]:
        raise Fault("step_mismatch", selected=s["selected"], optimizer=s["step"])
    if s["selected"] > 0:
        wanted = by_bytes(r[1] for r in parameters)
        if wanted != by_bytes(names):
            raise Fault("optimizer_names", expected=wanted, actual=by_bytes(names))
        shapes = {r[1]: r[3] for r in parameters}
        for r in sorted(moments[::2], key=lambda r: r[1].encode()):
            if r[3] != shapes[r[1]]:
                raise Fault("optimizer_shape", name=r[1], model_shape=shapes[r[1]], optimizer_shape=r[3])
    if s["groups"] and any(by_bytes(group) != group for group in s["groups"]) or by_bytes(names) != names:
        raise Fault("non_canonical", "reencode")


# ---- files with faults ----

def take_apart(data):
    header = stage_a(data)
    s = stage_b(data[38:header])
    s["payloads"] = [data[r[4]:r[4] + r[5]] for r in s["records"]]
    s["records"] = [list(r) for r in s["records"]]
    s["flag"] = 1 if s["groups"] else 0
    s["count"] = len(s["records"])
    return s


def put_names(names):
    texts = [name if isinstance(name, bytes) else name.encode() for name in names]
    return struct.pack("<I", len(texts)) + b"".join(struct.pack("<I", len(t)) + t for t in texts)


def put_together(s, place=True):
    """place: work offsets and lengths out from the shapes, as an honest writer does."""
    head = struct.pack("<HHQQBQ6Q2d5dB", 1, 1, s["selected"], s["rng"], s["kind"], s["tv"], *s["config"], s["base"], s["rms"],
                       *s["adamw"], s["flag"])
    if s["groups"]:
        head += put_names(s["groups"][0]) + put_names(s["groups"][1])
    head += struct.pack("<QddIII", s["step"], s["p1"], s["p2"], s["np"], s["nm"], s["count"])
    names = [r[1].encode() for r in s["records"]]
    header = 38 + len(head) + sum(26 + len(n) + 8 * len(r[3]) for n, r in zip(names, s["records"]))
    end = header
    for r, name, payload in zip(s["records"], names, s["payloads"]):
        if place:
            r[4], r[5] = end, len(payload)
        end += len(payload)
        head += struct.pack("<BI", r[0], len(name)) + name + struct.pack("<BI", r[2], len(r[3]))
        head += struct.pack(f"<{len(r[3])}Q", *r[3]) + struct.pack("<QQ", r[4] % U64, r[5] % U64)
    payload = b"".join(s["payloads"])
    return fix(b"LLMCP35\0" + struct.pack("<HIQQQ", 1, 0x01020304, 38 + len(head), len(payload), 0) + head + payload)


def fix(data):
    return data if len(data) < 38 else data[:30] + struct.pack("<Q", fnv(data)) + data[38:]


NUMBERS = [0, 1, 2, 3, 4, 5, 8, 255, 2**31, 2**32 - 1, 2**61, 2**63, 2**64 - 1]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, 5e-324, math.inf, -math.inf, math.nan]
NAMES = ["", "0", "1", "a", "a.", ".a", "a..b", "A", "é", "training-pairs", "token_embedding.weight", "final_norm.gain"]


def reshape(r, rng):
    """Another shape of the same size, most of the time."""
    n = math.prod(r[3])
    choices = [[n], [1, n], [n, 1], [n, 1, 1], [], [0], [0, n], [n, 0], [0, 2**63, 4], [2**63, 4, 0], list(reversed(r[3])), r[3] + [1]]
    if n % 2 == 0:
        choices += [[n // 2, 2], [2, n // 2]]
    r[3] = rng.choice(choices)


def edit(s, rng):
    kind = rng.randrange(16)
    records, payloads = s["records"], s["payloads"]
    i = rng.randrange(len(records)) if records else 0
    if kind == 0:
        s[rng.choice(["selected", "step", "tv", "rng"])] = rng.choice(NUMBERS)
    elif kind == 1:
        s["config"][rng.randrange(6)] = rng.choice(NUMBERS)
    elif kind == 2:
        s[rng.choice(["base", "rms", "p1", "p2"])] = rng.choice(REALS)
    elif kind == 3:
        s["adamw"][rng.randrange(5)] = rng.choice(REALS)
    elif kind == 4:
        s[rng.choice(["np", "nm", "count"])] = rng.choice([0, 1, 2, s["np"] + 1, max(s["np"] - 1, 0), U32 - 1])
    elif kind == 5:
        s["kind"] = rng.choice([1, 2, 3])
    elif kind == 6 and s["groups"]:
        group = rng.choice(s["groups"])
        rng.choice([lambda: group.append(rng.choice(NAMES)), lambda: group and group.pop(), lambda: rng.shuffle(group),
                    lambda: group.append(group[0] if group else "a"), lambda: group.clear(),
                    lambda: s["groups"][1].append(s["groups"][0][0] if s["groups"][0] else "b"),
                    lambda: group.append(b"\xff")])()
    elif kind == 7:
        s["groups"], s["flag"] = rng.choice([(None, 0), (([], []), 1), ((["a"], []), 1), (None, 2)])
    elif records:
        r = records[i]
        if kind == 8:
            del records[i], payloads[i]
            s["count"] = len(records)
        elif kind == 9:
            records.insert(i, list(r))
            payloads.insert(i, payloads[i])
            s["count"] = len(records)
        elif kind == 10:
            j = rng.choice([rng.randrange(len(records)), min(i + 1, len(records) - 1), min(i + 2, len(records) - 1)])
            records[i], records[j], payloads[i], payloads[j] = records[j], records[i], payloads[j], payloads[i]
        elif kind == 11:
            r[1] = rng.choice([*NAMES, records[rng.randrange(len(records))][1]])
        elif kind == 12:
            reshape(r, rng)
            if 0 in r[3]:
                payloads[i] = b""
        elif kind == 13:
            r[rng.choice([0, 2])] = rng.choice([0, 1, 2, 3, 4, 5, 6])
        elif kind == 14:
            data = bytearray(payloads[i])
            for _ in range(rng.choice([1, 1, 2])):
                if len(data) >= 8:
                    at = rng.randrange(len(data) // 8) * 8
                    data[at:at + 8] = struct.pack("<d", rng.choice(REALS))
                elif data:
                    data[rng.randrange(len(data))] = rng.choice([0, 1, 0x30, 0x31, 0xff])
            payloads[i] = bytes(data)
        else:
            s["extent"] = (i, rng.choice([4, 5]), rng.choice([-1, 1, 2**63, -2**63]))


def swap_pairs(s, rng):
    """Moments in another order, or one parameter's shape changed in all its records."""
    first = len(s["records"]) - 2 * s["nm"]
    records, payloads = s["records"], s["payloads"]
    if s["nm"] < 2 or rng.random() < 0.5:
        name = rng.choice(records)[1]
        shape = None
        for r in records:
            if r[1] == name:
                if shape is None:
                    reshape(r, rng)
                    shape = r[3]
                r[3] = shape
        for i, r in enumerate(records):
            if 0 in r[3]:
                payloads[i] = b""
        return
    a, b = (first + 2 * k for k in rng.sample(range(s["nm"]), 2))
    for x in (records, payloads):
        x[a:a + 2], x[b:b + 2] = x[b:b + 2], x[a:a + 2]


def make(base, rng):
    kind = rng.randrange(10)
    if kind == 0:  # bits anywhere, the checksum put right
        data = bytearray(base)
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(data))
            data[at] ^= 1 << rng.randrange(8)
        return fix(bytes(data))
    if kind == 1:  # bits of the header, where the rules are
        data = bytearray(base)
        at = rng.randrange(8, struct.unpack("<Q", base[14:22])[0])
        data[at] = rng.choice([0, 1, 2, 3, 4, 5, 6, 0x2e, 0x41, 0x61, 0x7f, 0x80, 0xff])
        return fix(bytes(data))
    if kind == 2:  # cut or grown, the extents in the header put right, or not
        data = base[:rng.randrange(len(base))] if rng.random() < 0.7 else base + bytes(rng.randrange(1, 9))
        if len(data) >= 38 and rng.random() < 0.7:
            header = rng.choice([struct.unpack("<Q", base[14:22])[0], rng.randrange(38, len(data) + 1)])
            data = data[:14] + struct.pack("<QQ", header, (len(data) - header) % U64) + data[30:]
        return fix(data)
    s = take_apart(base)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        swap_pairs(s, rng) if kind == 3 else edit(s, rng)
    data = put_together(s)
    if "extent" in s and s["extent"][0] < len(s["records"]):
        i, field, change = s["extent"]
        s["records"][i][field] = (s["records"][i][field] + change) % U64
        data = put_together(s, place=False)
    return data


def main():
    verdicts, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 35
    rng = random.Random(seed)
    bases = [GOLDEN / "v1-selected-step8.bin", *sorted(GOLDEN.glob("valid/*.bin"))]
    bases = [path.read_bytes() for path in bases]
    bases.sort(key=len)
    cases = list(bases)
    while len(cases) < n:
        base = rng.choice(bases[:5] if rng.random() < 0.95 else bases)
        try:
            cases.append(make(base, rng))
        except (struct.error, IndexError):
            continue
    frames = b"".join(struct.pack("<I", len(data)) + data for data in cases)
    out = subprocess.run([verdicts], input=frames, stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    if len(out) != len(cases):
        sys.exit(f"{len(out)} answers to {len(cases)} files")
    seen = {}
    for i, (data, line) in enumerate(zip(cases, out)):
        try:
            decode(data)
            expected = {"ok": True}
        except Fault as fault:
            expected = {"category": fault.category, "cause": fault.cause, "fields": fault.fields}
        if json.loads(line) != expected:
            kept = pathlib.Path(tempfile.gettempdir(), f"llmcp35-oracle-{seed}-{i}.bin")
            kept.write_bytes(data)
            sys.exit(f"seed {seed}, case {i} ({kept}):\nlibrary {line}\noracle  {json.dumps(expected)}")
        key = "ok" if "ok" in expected else "/".join(filter(None, (expected["category"], expected["cause"])))
        seen[key] = seen.get(key, 0) + 1
    if len(seen) < 60 and n >= 2000:
        sys.exit(f"only {len(seen)} different answers: {seen}")
    print(f"seed {seed}: {n} files, {len(seen)} different answers, all the same")
    if "-v" in sys.argv:
        print("\n".join(f"{count:6} {key}" for key, count in sorted(seen.items())))


main()
