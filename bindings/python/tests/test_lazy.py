"""Lazy loads: a tensor is read and verified when it is first asked for, whichever way it is asked for."""

from __future__ import annotations

import copy as copying
import io
import itertools
import os
import pickle
import shutil
import signal
import threading

import numpy as np
import pytest

import pawl
import pawl.numpy
from pawl import OptimizerState
from pawl._arrays import LazyTensors

N = 3 << 18  # 3 MiB: the middle of a tensor lies in a block of its own
WAYS = list(itertools.product((True, False), (True, False)))


def weights() -> dict[str, np.ndarray]:
    return {name: np.arange(N, dtype="f4") + i for i, name in enumerate("abc")}


def save(root: str, sums: bool) -> pawl.OptimizerState:
    model = weights()
    sd = {"step": 2, "lr": 0.25, "exp_avg": [array * 2 for array in model.values()]}
    optimizer = OptimizerState.from_state_dict(sd, list(model), "adamw")
    pawl.save_checkpoint(root, 1, model, optimizer, sums=sums)
    return optimizer


def damage(root: str, name: str, file: str = "model.safetensors") -> None:
    """Change the middle byte of a tensor."""
    path = f"{root}/step-000001/{file}"
    with pawl.safe_open(path, "numpy") as reader:
        array = reader.get_tensor(name)
    with open(path, "r+b") as f:
        data = f.read()
        at = data.index(array.tobytes()) + array.nbytes // 2
        f.seek(at)
        f.write(bytes([data[at] ^ 1]))


def lazy(root: str = "r", copy: bool = True) -> pawl.Checkpoint:
    return pawl.load_checkpoint(root, trust="lazy", copy=copy)


@pytest.mark.parametrize(("sums", "copy"), WAYS)
def test_equals_a_full_load(sums, copy):
    save("r", sums)
    full = pawl.load_checkpoint("r", copy=copy)
    for found in (lazy(copy=copy), pawl.latest_checkpoint("r", trust="lazy", copy=copy), pawl.Run("r").load(trust="lazy", copy=copy)):
        assert found is not None and found.optimizer is not None and full.optimizer is not None
        assert list(found.model) == list(full.model) and len(found.model) == 3 and "b" in found.model
        assert found.model.dtypes == full.model.dtypes and found.model.metadata == full.model.metadata
        assert "3 of them not read yet" in repr(found.model)
        assert found.model["b"] is found.model["b"] is found.model.get("b")
        assert "2 of them not read yet" in repr(found.model)
        for name, array in full.model.items():
            got = found.model[name]
            assert type(got) is type(array) and got.flags.writeable == array.flags.writeable == copy
            assert got.dtype == array.dtype and (got == array).all()
        assert found.optimizer.scalars == full.optimizer.scalars
        for a, b in zip(found.optimizer.state_dict()["exp_avg"], full.optimizer.state_dict()["exp_avg"], strict=True):
            assert (a == b).all()
        assert found.verify() == []


@pytest.mark.parametrize(("sums", "copy"), WAYS)
def test_damage_is_found_by_who_asks(sums, copy):
    save("r", sums)
    damage("r", "b")
    with pytest.raises(pawl.IncompleteError):
        pawl.load_checkpoint("r", 1)
    found = lazy(copy=copy)
    said = []
    for ask in (lambda: found.model["b"], lambda: found.model.get("b"), lambda: found.model.pop("b"), lambda: dict(found.model)):
        with pytest.raises(pawl.FormatError) as caught:
            ask()
        said.append(str(caught.value))
        assert caught.value.code == "hash" and str(caught.value.path).endswith("model.safetensors")
        assert not sums or "tensor 'b'" in said[-1]
    assert "b" in found.model and said[1:3] == said[:1] * 2
    if sums:
        assert (found.model["a"] == weights()["a"]).all() and (found.model["c"] == weights()["c"]).all()
        assert said[3] == said[0]
    assert found.optimizer is not None and (found.optimizer.tensors["a.exp_avg"] == weights()["a"] * 2).all()
    listed = found.verify()
    assert any(problem.file == "model.safetensors" for problem in listed)
    assert not sums or "b" in [problem.tensor for problem in listed]
    assert lazy().verify() == listed


def test_damage_of_the_optimizer():
    save("r", True)
    damage("r", "c.exp_avg", "optimizer.safetensors")
    found = lazy()
    assert dict(found.model).keys() == weights().keys()
    with pytest.raises(pawl.FormatError, match="c.exp_avg"):
        found.optimizer.state_dict()
    target = {name: np.zeros(N, "f4") for name in "abc"}
    held = OptimizerState("adamw", {f"{name}.exp_avg": np.zeros(N, "f4") for name in "abc"})
    with pytest.raises(pawl.FormatError, match="c.exp_avg"):
        lazy().restore(target, held)
    assert not any(array.any() for array in target.values()), "all or nothing"


def test_restore():
    save("r", False)
    target = {name: np.zeros(N, "f4") for name in "abc"}
    assert lazy().restore(target) == ([], [], [])
    assert all((target[name] == array).all() for name, array in weights().items())


def _savez(d):
    out = io.BytesIO()
    np.savez(out, **d)
    out.seek(0)
    return dict(np.load(out))


@pytest.mark.parametrize(
    "take",
    [
        dict,
        lambda d: {**d},
        lambda d: (lambda **given: given)(**d),
        lambda d: dict(d.items()),
        lambda d: dict(list(d.items())),
        lambda d: dict(zip(d, d.values(), strict=True)),
        lambda d: dict(zip(d.keys(), d.values(), strict=True)),
        lambda d: d.copy(),
        lambda d: d | {},
        lambda d: {} | d,
        lambda d: copying.copy(d),
        lambda d: copying.deepcopy(d),
        lambda d: pickle.loads(pickle.dumps(d)),
        lambda d: {name: d[name] for name in d},
        lambda d: {name: d.setdefault(name) for name in d},
        lambda d: {name: d.pop(name) for name in list(d)},
        lambda d: dict(d.popitem() for _ in range(3)),
        lambda d: {name: array for name, array in d.items()},
        lambda d: _updated({}, d),
        lambda d: _updated(pawl.numpy.load(pawl.numpy.save({})), d),
        lambda d: pawl.numpy.load(pawl.numpy.save(d)),
        _savez,
    ],
)
def test_every_way_out_of_the_dict(take):
    save("r", True)
    got = take(lazy().model)
    assert sorted(got) == ["a", "b", "c"]
    for name, array in weights().items():
        assert isinstance(got[name], np.ndarray) and (got[name] == array).all()
    damage("r", "b")
    with pytest.raises(pawl.FormatError, match="'b'"):
        take(lazy().model)


def _updated(target, d):
    target.update(d)
    return target


def test_changes_of_the_dict():
    save("r", True)
    damage("r", "b")
    d = lazy().model
    mine = np.ones(2)
    d["b"] = mine
    assert d["b"] is mine and dict(d)["b"] is mine
    d = lazy().model
    del d["b"]
    assert list(dict(d)) == ["a", "c"] and "b" not in d and d.get("b") is None and d.pop("b", 5) == 5
    for change in (lambda d: d.update(b=mine), lambda d: d.__ior__({"b": mine}), lambda d: d.update([("b", mine)])):
        d = lazy().model
        change(d)
        assert d["b"] is mine and len(dict(d)) == 3
    d.clear()
    assert dict(d) == {} and not d and d == {}
    same = lazy().model
    del same["b"]
    plain = dict(same)
    assert same == plain and plain == same and not same != plain and same != {}
    with pytest.raises(KeyError):
        same["b"]


@pytest.mark.parametrize("sums", [True, False])
def test_packed_and_half_floats(sums):
    data = pawl.numpy.save(
        {"p": np.arange(8, dtype="u1").reshape(2, 4), "h": np.ones(3, "f4"), "e": np.zeros((0, 2))}, dtypes={"p": "F4", "h": "BF16"}
    )
    pawl.save_checkpoint("r", 1, pawl.numpy.load(data), sums=sums)
    full = pawl.load_checkpoint("r").model
    for copy in (True, False):
        d = lazy(copy=copy).model
        assert d.dtypes == full.dtypes and d._shapes == full._shapes
        for name, array in full.items():
            assert d[name].dtype == array.dtype and d[name].tobytes() == array.tobytes() and d[name].shape == array.shape


@pytest.mark.parametrize("copy", [True, False])
def test_names_of_one_array_stay_one(copy):
    w = np.ones((2, 3), "f4")
    pawl.save_checkpoint("r", 1, {"head": w, "embed": w, "x": np.zeros(2)})
    full, d = pawl.load_checkpoint("r", copy=copy).model, lazy(copy=copy).model
    assert full["head"] is full["embed"], "tied"
    assert d["embed"] is d["head"] and (d["head"] == w).all() and dict(d).keys() == full.keys() and not d._shared


def test_arrays_outlive_the_checkpoint():
    save("r", True)
    array = lazy(copy=False).model["b"]
    assert isinstance(array, np.memmap) and (array == weights()["b"]).all()


@pytest.mark.parametrize(("sums", "copy"), WAYS)
def test_the_step_may_go_meanwhile(sums, copy):
    save("r", sums)
    found = lazy(copy=copy)
    shutil.rmtree("r")
    assert (found.model["b"] == weights()["b"]).all() and found.verify() == []


def test_threads_get_the_same_array():
    save("r", True)
    for copy in (True, False):
        d = lazy(copy=copy).model
        start, got = threading.Barrier(6), []

        def ask(d=d, start=start, got=got):
            start.wait()
            got.append([d[name] for name in "cab"])

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 6 and all(x is y for arrays in got for x, y in zip(arrays, got[0], strict=True))


def test_verify_for_every_trust():
    save("r", True)
    for trust in ("full", "size-only", "lazy"):
        assert pawl.load_checkpoint("r", trust=trust).verify() == []
    damage("r", "b")
    for trust in ("size-only", "lazy"):
        listed = pawl.load_checkpoint("r", trust=trust).verify()
        assert listed and listed[0].file == "model.safetensors"
    with pytest.raises(pawl.ArgumentError, match="'lazy'"):
        pawl.load_checkpoint("r", trust="none")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork")
def test_a_forked_child_does_not_wait_for_a_thread_that_is_not_there():
    """Goal: fork while another thread puts an array in its place: the child reads on. Method: the thread stands there for a moment; the child has an
    alarm that would kill it."""
    inside = threading.Event()

    class Slow(dict):
        def setdefault(self, key, value):
            inside.set()
            threading.Event().wait(0.3)
            return super().setdefault(key, value)

    tensors = LazyTensors({"a": 0, "tied": 0, "b": 1}, lambda place: np.full(3, place))
    tensors._shared = Slow()
    filler = threading.Thread(target=lambda: tensors["a"])
    filler.start()
    assert inside.wait(20)
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            os._exit(0 if tensors["b"][0] == 1 and tensors["tied"] is tensors["a"] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    filler.join()
    assert tensors["tied"] is tensors["a"]
