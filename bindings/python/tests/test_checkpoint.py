"""Checkpoints: what is saved comes back, what is refused leaves the root as it was, what is damaged is passed over."""

from __future__ import annotations

import collections
import json
import math
import pathlib
import random
import shutil
import subprocess
import warnings

import numpy as np
import pytest

import pawl
import pawl.numpy
from pawl import OptimizerState


def model(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"fc.weight": rng.standard_normal((4, 3)).astype("f4"), "fc.bias": rng.standard_normal(3).astype("f4"), "n": np.arange(5)}


def test_everything_comes_back():
    weights = model()
    rng = pawl.PCG32(3)
    rng.normal()  # one is pending
    sd = {"step": 2, "lr": 0.25, "betas": (0.9, 0.999), "exp_avg": [weights["fc.weight"] * 2, weights["fc.bias"] * 3]}
    optimizer = OptimizerState.from_state_dict(sd, ["fc.weight", "fc.bias"], "adamw")
    state = {"tokens_seen": 2**62, "data_cursor": {"shard": 1, "offset": 7}, "config_sha256": "ab" * 32, "git_sha": "cd" * 20, "loss_scale": 128.0}
    path = pawl.save_checkpoint(
        "r", 2**40, weights, optimizer, rng=rng, state=state, config=b"{ not json", attachments={"b.bin": b"\0\xff", "t": [1, (2,)]}, metrics={"loss": 1.5}
    )
    assert path.name == "step-1099511627776" and pawl.verify_step(path) == []
    for copy in (True, False):
        c = pawl.load_checkpoint("r", copy=copy)
        assert c.step == 2**40 and c.path == path and c.complete and c.skipped == []
        assert set(c.model) == set(weights)
        for name, array in weights.items():
            assert c.model[name].dtype == array.dtype and c.model[name].tobytes() == array.tobytes()
        assert c.rng == rng.state() and c.generator() == rng and c.generator().spare == rng.spare
        assert c.state == {**state, "lr": 0.25} and c.metrics == {"loss": 1.5}
        assert c.config_bytes == b"{ not json" and dict(c.attachments) == {"b.bin": b"\0\xff", "t": [1, (2,)]}
        with pytest.raises(pawl.FormatError):
            c.config
        back = c.optimizer.state_dict()
        assert list(back) == list(sd) and back["betas"] == (0.9, 0.999) and type(back["betas"]) is tuple
        for a, b in zip(back["exp_avg"], sd["exp_avg"], strict=True):
            assert a.tobytes() == b.tobytes()


def test_saves_are_byte_identical(entries):
    for root in ("a", "b"):
        pawl.save_checkpoint(root, 5, model(), rng=(1, 3), config={"x": [1.0, None]}, attachments={"t": {"k": np.arange(3)}})
    assert entries("a") == entries("b")


def test_torch_shaped_state_is_inverted_exactly():
    sd = {
        "state": {1: {"step": np.float32(3), "exp_avg": np.ones(2, "f4")}, 0: {"exp_avg": np.zeros(3, "f4"), "step": 7}},
        "param_groups": [{"params": [0], "lr": 0.1, "betas": (0.9, 0.99), "foreach": None}, {"lr": np.array(0.5), "params": [1], "x": [1, (2, 3)]}],
    }
    sd["state"][1]["step"] = np.array(3, "f4")
    state = OptimizerState.from_state_dict(sd, ["a", "b"], "adamw")
    assert state.lr() == 0.1
    pawl.save_checkpoint("r", 1, {"a": np.zeros(3), "b": np.zeros(2)}, state)
    c = pawl.load_checkpoint("r")
    back = c.optimizer.state_dict()
    assert c.state["lr"] == 0.1 and list(back) == list(sd) and list(back["state"]) == [1, 0]
    assert list(back["state"][0]) == ["exp_avg", "step"] and back["state"][0]["step"] == 7
    assert back["state"][1]["step"].dtype == np.float32 and back["state"][1]["step"].shape == ()
    assert [list(g) for g in back["param_groups"]] == [list(g) for g in sd["param_groups"]]
    assert back["param_groups"][0]["betas"] == (0.9, 0.99) and back["param_groups"][1]["x"] == [1, (2, 3)]
    assert back["param_groups"][1]["lr"].tolist() == 0.5


def random_tree(rng: random.Random, depth: int = 0):
    leaves = [
        lambda: None, lambda: rng.random() < 0.5, lambda: rng.randint(-5, 5), lambda: rng.getrandbits(rng.choice([3, 63, 64, 200, 20000])),
        lambda: -rng.getrandbits(70), lambda: rng.random(), lambda: rng.choice([math.inf, -math.inf, -0.0, 1e-320, 1e22]), lambda: "té\n\0$",
        lambda: np.float32(rng.random()), lambda: np.int8(rng.randint(-9, 9)), lambda: np.bool_(True),
        lambda: np.arange(rng.randint(0, 4)).astype(rng.choice(["f4", "i8", ">u2", "?"])), lambda: np.array(rng.random()),
    ]  # fmt: skip
    if depth > 4 or rng.random() < 0.4:
        return rng.choice(leaves)()
    items = [random_tree(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    keys = [rng.choice(["a", "$", "b c", 3, -1, True, None, 2.5, (1, "x")]) for _ in items]
    return rng.choice([
        lambda: items, lambda: tuple(items), lambda: dict(zip(keys, items)), lambda: {f"k{i}": x for i, x in enumerate(items)},
        lambda: collections.OrderedDict(zip(keys, items)), lambda: collections.Counter(["a", "b", "a"]),
    ])()  # fmt: skip


def same(a, b) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and [type(k) for k in a] == [type(k) for k in b] and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and a.shape == b.shape and (a == b).all()
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return a == b


def test_trees_come_back_equal_types_included(seeded):
    for i in range(25):
        tree = random_tree(seeded)
        if isinstance(tree, bytes):
            continue
        pawl.save_checkpoint("r", i, {}, attachments={"tree": tree, "nan": float("nan")}, keep=1)
        held = pawl.load_checkpoint("r").attachments
        assert sorted(held) == ["nan", "tree"] and math.isnan(held["nan"])
        assert same(held["tree"], tree), (tree, held["tree"])


def deep():
    tree: list = []
    for _ in range(200):
        tree = [tree]
    return tree


def looped():
    tree: dict = {}
    tree["me"] = [tree]
    return tree


@pytest.mark.parametrize(
    "tree, text",
    [
        ({"lr_lambdas": [lambda x: x]}, "tree['lr_lambdas'][0]: function"),
        ({"x": object()}, "tree['x']: object"),
        ({"x": {1, 2}}, "tree['x']: set"),
        ({"x": (b"raw",)}, "tree['x'][0]: bytes"),
        (looped(), "contains itself"),
        (deep(), "deeper"),
        ({"x": "\ud800"}, "surrogate"),
        ({"x": np.array([object()])}, "tree['x']: array of object"),
    ],
)
def test_trees_that_are_none_are_named(tree, text):
    with pytest.raises(pawl.ArgumentError) as info:
        pawl.save_checkpoint("new/root", 1, {}, attachments={"tree": tree})
    assert text in str(info.value)
    import os

    assert os.listdir() == []


BAD = [
    {"step": -1}, {"step": 2**63}, {"keep": 0}, {"keep": -1}, {"keep_every": 0}, {"max_file_bytes": 0}, {"busy": "maybe"}, {"profile": "x"},
    {"keep_best": ("loss", "least", 1)}, {"keep_best": ("loss", "min", 0)}, {"rng": (1, 2)}, {"rng": (1, 2**64 + 1)}, {"rng": (1,)},
    {"rng": {"pcg_state": "0" * 16}}, {"rng": {"pcg_state": "0" * 16, "pcg_inc": "0" * 16}}, {"rng": {"a_state": "zz", "a_inc": "1"}},
    {"state": {"epoch": 1}}, {"state": {"tokens_seen": -1}}, {"state": {"tokens_seen": 1.5}}, {"state": {"tokens_seen": True}},
    {"state": {"data_cursor": {"shard": 0}}}, {"state": {"data_cursor": {"shard": 0, "offset": -1}}}, {"state": {"lr": math.nan}}, {"state": {"lr": "x"}},
    {"state": {"git_sha": "no"}}, {"state": {"config_sha256": "AB" * 32}}, {"metrics": {"loss": math.inf}}, {"metrics": {"": 1.0}},
    {"attachments": {"a/b": b""}}, {"attachments": {"": b""}}, {"attachments": {"model.safetensors": b""}}, {"attachments": {"pawl.x": b""}},
    {"attachments": {"config": {}}}, {"attachments": {"config.json": b""}}, {"attachments": {"..": b""}}, {"attachments": {"a\ud800": b""}},
    {"attachments": {"t": {}, "t.json": b""}}, {"config": {"x": math.nan}}, {"config": {"x": object()}},
    {"model": {"w": np.zeros(1, "O")}}, {"model": {"__metadata__": np.zeros(1)}}, {"model": {"w": np.zeros(1)}, "profile": "tinyllm"},
    {"optimizer": OptimizerState("adam", {}, {}), "profile": "tinyllm"}, {"optimizer": OptimizerState("adamw", {"w.m": np.zeros(1)}), "profile": "tinyllm"},
    {"optimizer": OptimizerState("adamw", {}, {"x": object()})},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=[f"{i}-{next(iter(b))}" for i, b in enumerate(BAD)])
def test_refusals_leave_the_root_untouched(folder, entries, bad):
    """Goal: after an ArgumentError there is no root where there was none, and the same bytes where there was one."""
    for root in ("new/deep/root", "old"):
        if root == "old":
            pawl.save_checkpoint("old", 1, {"w": np.zeros(3)})
        before = entries(folder)
        arguments = {"step": 2, "model": {}, **bad}
        with pytest.raises(pawl.ArgumentError):
            pawl.save_checkpoint(root, arguments.pop("step"), arguments.pop("model"), **arguments)
        assert entries(folder) == before


def test_a_late_refusal_takes_the_new_root_away_again(folder, monkeypatch):
    """What only the save itself refuses leaves no folder behind either, and never one that was there or is not empty."""

    def refuse(*_):
        raise pawl.ArgumentError("late", code="argument")

    (folder / "there").mkdir()
    monkeypatch.setattr(pawl.Run, "_save_described", refuse)
    with pytest.raises(pawl.ArgumentError, match="late"):
        pawl.save_checkpoint("there/new/root", 1, {})
    assert [p.name for p in folder.rglob("*")] == ["there"]


def test_wrong_types():
    for bad in ({"model": 3}, {"model": {1: np.zeros(1)}}, {"step": "1"}, {"optimizer": 3}):
        arguments = {"step": 1, "model": {}, **bad}
        with pytest.raises(TypeError):
            pawl.save_checkpoint("r", arguments.pop("step"), arguments.pop("model"), **arguments)


def test_latest_is_none_only_when_there_is_nothing(folder):
    assert pawl.latest_checkpoint("none") is None
    (folder / "empty").mkdir()
    assert pawl.latest_checkpoint("empty") is None
    (folder / "empty" / "step-000001.bad").mkdir()
    with pytest.raises(pawl.NoneCompleteError):
        pawl.latest_checkpoint("empty")


def test_a_damaged_step_is_passed_over_and_said():
    for step in (1, 2, 3):
        pawl.save_checkpoint("r", step, {"w": np.full(100, step)})
    with open("r/step-000003/model.safetensors", "r+b") as f:
        f.seek(-1, 2)
        f.write(b"\xff")
    (pawl.load_checkpoint("r", 2).path / "stray").write_text("x")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        c = pawl.load_checkpoint("r")
    assert [str(w.message) for w in caught][:2] == [
        "r/step-000003 was skipped: model.safetensors: hash",
        "r/step-000002 was skipped: stray: unlisted-file",
    ]
    assert {w.category for w in caught} == {pawl.Warning} and {w.filename for w in caught} == {__file__}
    assert c.step == 1 and [(s.path.name, [(r.code, r.file) for r in s.reasons]) for s in c.skipped] == [
        ("step-000003", [("hash", "model.safetensors")]),
        ("step-000002", [("unlisted-file", "stray")]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pawl.load_checkpoint("r", trust="size-only").step == 3
    with pytest.raises(pawl.IncompleteError) as info:
        pawl.load_checkpoint("r", 3)
    assert [r.code for r in info.value.reasons] == ["hash"]
    with pytest.raises(pawl.NotFoundError) as gone:
        pawl.load_checkpoint("r", 9)
    assert not isinstance(gone.value, pawl.NoneCompleteError)
    for bad in ({"trust": "none"}, {"step": -1}):
        with pytest.raises(pawl.ArgumentError):
            pawl.load_checkpoint("r", **bad)


def test_steps_newer_than_latest_are_ignored_and_said(folder):
    for step in (1, 2):
        pawl.save_checkpoint("r", step, {})
    (folder / "r" / "LATEST").write_text("step-000001\n")
    with pytest.warns(pawl.Warning, match="step-000002 is newer than LATEST"):
        assert pawl.load_checkpoint("r").step == 1


def test_weights_come_out_of_a_step_with_a_damaged_optimizer(folder):
    pawl.save_checkpoint("r", 1, {"w": np.ones(4)}, OptimizerState("sgd", {"w.m": np.ones(4)}))
    (folder / "r/step-000001/optimizer.safetensors").write_bytes(b"gone")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        c = pawl.load_checkpoint("r", weights_only=True)
    assert str(caught[0].message) == "r/step-000001 is not complete: optimizer.safetensors: size"
    assert c.skipped == [] and not c.complete and c.model["w"].tolist() == [1, 1, 1, 1] and c.optimizer is None
    with pytest.raises(pawl.NoneCompleteError):
        pawl.load_checkpoint("r")


def test_restore_is_all_or_nothing():
    pawl.save_checkpoint("r", 1, model(), OptimizerState("sgd", {"fc.bias.m": np.ones(3)}, {"lr": 0.5}))
    c = pawl.load_checkpoint("r")
    target = model(1)
    before = {k: v.copy() for k, v in target.items()}
    bad = {**target, "extra": np.zeros(1)}
    with pytest.raises(pawl.MismatchError) as info:
        c.restore(bad)
    assert info.value.missing == ["extra"]
    with pytest.raises(pawl.MismatchError):
        c.restore(target, OptimizerState("adamw"))
    other = OptimizerState("sgd", {"fc.bias.m": np.zeros(4)})
    with pytest.raises(pawl.MismatchError, match="optimizer: fc.bias.m"):
        c.restore(target, other)
    assert all((target[k] == before[k]).all() for k in target)
    assert c.restore(bad, strict=False).missing == ["extra"]
    optimizer = OptimizerState("sgd", {"fc.bias.m": np.zeros(3)})
    assert not any(c.restore(target, optimizer))
    assert all((target[k] == model()[k]).all() for k in target) and optimizer.scalars["lr"] == 0.5 and optimizer.tensors["fc.bias.m"].tolist() == [1] * 3
    pawl.save_checkpoint("bare", 1, model())
    with pytest.raises(pawl.MismatchError, match="no optimizer"):
        pawl.load_checkpoint("bare").restore(target, optimizer)
    with pytest.raises(pawl.MismatchError):
        pawl.load_checkpoint("bare").generator()


def test_objects_with_state_dicts():
    class Module:
        def __init__(self):
            self.held = model()

        def state_dict(self):
            return self.held

        def named_parameters(self):
            return [(k, self.held[k]) for k in ("fc.weight", "fc.bias")]

        def load_state_dict(self, sd):
            self.held = dict(sd)

    class Sgd:
        held = {"lr": 0.5, "velocity": [np.ones((4, 3), "f4"), np.ones(3, "f4")]}

        def state_dict(self):
            return self.held

        def load_state_dict(self, sd):
            self.held = sd

    module, sgd = Module(), Sgd()
    pawl.save_checkpoint("r", 1, module, sgd)
    c = pawl.load_checkpoint("r")
    assert c.optimizer.name == "sgd" and sorted(c.optimizer.tensors) == ["fc.bias.velocity", "fc.weight.velocity"]
    module.held = {k: v * 0 for k, v in module.held.items()}
    other = Sgd()
    c.restore(module, other)
    assert (module.held["fc.bias"] == model()["fc.bias"]).all() and other.held["lr"] == 0.5 and len(other.held["velocity"]) == 2


def test_retention():
    for step in range(1, 13):
        pawl.save_checkpoint("r", step, {}, keep=2, keep_every=5, keep_best=("loss", "min", 1), metrics={"loss": abs(step - 3) + 1.0})
    with pawl.Run("r") as run:
        assert run.steps() == [3, 5, 10, 11, 12]
        run.pin(3)
        assert [p.name for p in run.prune(1)] == ["step-000005", "step-000010", "step-000011"]
        assert run.steps() == [3, 12]
        run.unpin(3)
        run.prune(1)
        assert run.steps() == [12]


def test_large_models_are_split():
    weights = {f"w{i}": np.full(1000, i) for i in range(5)}
    path = pawl.save_checkpoint("r", 1, weights, max_file_bytes=17_000)
    assert (path / "model.safetensors.index.json").exists() and len(list(path.glob("model-*"))) == 3
    assert all((pawl.load_checkpoint("r").model[k] == v).all() for k, v in weights.items())


def test_a_checkpoint_of_another_writer(golden):
    """Goal: what a writer without `state`, `params` or `layout` left is read, and asking for what is not there says so."""
    for case in sorted((golden / "checkpoint" / "good").iterdir()):
        expected = json.loads((case / "expected.json").read_text())
        if not (case / "root").is_dir() or (case / "setup.sh").exists() or expected["result"] != "loaded":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pawl.Warning)
            c = pawl.load_checkpoint(case / "root")
        values = json.loads((case / "values.json").read_text())
        assert c.path.name == expected["load"]["name"] and c.step == expected["load"]["step"], case.name
        assert c.path.name in json.dumps(values)
        if c.optimizer is not None:
            assert isinstance(c.optimizer.scalars, dict)


def test_the_verdicts_of_the_golden_roots(golden, folder):
    """Goal: load and verify_step say of every golden root what its page says. Method: a copy of each, its setup run."""
    seen = 0
    for case in sorted([*(golden / "checkpoint" / "good").iterdir(), *(golden / "checkpoint" / "bad").iterdir()]):
        expected = json.loads((case / "expected.json").read_text())
        root = folder / "cases" / case.name / "root"
        root.parent.mkdir(parents=True)
        if (case / "root").is_dir():
            shutil.copytree(case / "root", root, symlinks=True)
        else:
            root.mkdir()
        if (case / "setup.sh").exists():
            subprocess.run(["sh", str(case / "setup.sh")], cwd=root, check=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pawl.Warning)
            try:
                c = pawl.load_checkpoint(root)
                found = ("loaded", c.path.name, [(s.path.name, sorted((r.code, r.file or "") for r in s.reasons)) for s in c.skipped])
            except pawl.NoneCompleteError:
                found = ("none-complete", None, None)
            except pawl.NotFoundError:
                found = ("not-found", None, None)
        want = (expected["result"], expected["load"] and expected["load"]["name"], None)
        assert found[:2] == want[:2], case.name
        if found[0] == "loaded":
            skipped = [(s["name"], sorted((r["code"], r["file"] or "") for r in s["reasons"])) for s in expected["skipped"]]
            assert found[2] == skipped, case.name
        for step in expected["steps"]:
            problems = pawl.verify_step(root / step["name"], profile=expected["profile"])
            assert sorted((p.code, p.file or "") for p in problems) == sorted((r["code"], r["file"] or "") for r in step["reasons"]), (case.name, step)
        seen += 1
    assert seen > 100


def test_sums_are_written_when_asked_for(entries):
    """In the foreground and in the background the same file, which the step's manifest lists."""
    weights = {"w": np.arange(400_000.0)}
    for root, save in (("a", pawl.Run.save), ("b", pawl.Run.save_async)):
        with pawl.Run(root, sums=True) as run:
            save(run, 1, weights)
    pawl.save_checkpoint("c", 1, weights, sums=True)
    assert entries("a") == entries("b") == entries("c")
    assert (pathlib.Path("a") / "step-000001" / "pawl.sums").read_bytes().startswith(b"PAWLSUMS")
    assert pawl.verify_step("a/step-000001") == [] and (pawl.load_checkpoint("a").model["w"] == weights["w"]).all()
    pawl.save_checkpoint("d", 1, weights)
    assert not (pathlib.Path("d") / "step-000001" / "pawl.sums").exists()
