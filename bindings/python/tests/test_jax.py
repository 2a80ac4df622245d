"""JAX: trees as files and checkpoints. Runs where jax is."""

from __future__ import annotations

import numpy as np
import pytest

import pawl

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import pawl.flax  # noqa: E402
import pawl.jax as pj  # noqa: E402


def tree():
    return {"params": {"dense": {"kernel": jnp.arange(6.0).reshape(2, 3), "bias": jnp.ones(3, jnp.bfloat16)}, "list": [jnp.zeros(2), (jnp.int32(4),)]}}


def test_files_are_trees():
    t = tree()
    pj.save_file(t, "f", {"a": "b"})
    flat = pj.load_file("f")
    assert sorted(flat) == ["params.dense.bias", "params.dense.kernel", "params.list.0", "params.list.1.0"]
    assert flat["params.dense.bias"].dtype == jnp.bfloat16 and isinstance(flat["params.dense.kernel"], jax.Array)
    back = pj.load_file("f", like=t)
    assert jax.tree_util.tree_structure(back) == jax.tree_util.tree_structure(t)
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(jax.tree_util.tree_leaves(back), jax.tree_util.tree_leaves(t), strict=True))
    assert pawl.flax.load(pj.save(t)).keys() == flat.keys()
    with pytest.raises(pawl.MismatchError) as info:
        pj.load_file("f", like={"params": {"dense": {"kernel": jnp.zeros(1)}, "more": jnp.zeros(1)}})
    assert info.value.missing == ["params.more"] and len(info.value.mismatched) == 1 and info.value.unexpected
    with pawl.safe_open("f", framework="flax") as f:
        assert isinstance(f.get_tensor("params.dense.bias"), jax.Array)
    with pytest.raises(pawl.ArgumentError, match="two leaves"):
        pj.save({"a": {"b": jnp.zeros(1)}, "a.b": jnp.zeros(1)})


def test_checkpoints_with_keys_and_states():
    params, key = tree()["params"], jax.random.key(7)
    opt = ({"mu": params, "count": jnp.int32(3)}, {"inner": jax.random.split(key, 2)})
    pj.save_checkpoint("r", 4, params=params, opt_state=opt, rng=key, metrics={"loss": 1.0})
    found, checkpoint = pj.load_checkpoint("r", like={"params": params, "opt_state": opt})
    assert checkpoint.step == 4 and checkpoint.metrics == {"loss": 1.0} and bool(found["rng"] == key)
    leaves = jax.tree_util.tree_leaves(found["opt_state"]), jax.tree_util.tree_leaves(opt)
    assert all(bool((a == b).all()) for a, b in zip(*leaves, strict=True))
    flat, _ = pj.load_checkpoint("r")
    assert set(flat["params"]) == {"dense.kernel", "dense.bias", "list.0", "list.1.0"}
    pj.save_checkpoint("bare", 1, params=params, rng=jax.random.PRNGKey(1))
    found, _ = pj.load_checkpoint("bare")
    assert found["opt_state"] is None and np.array_equal(found["rng"], jax.random.PRNGKey(1))
    with pytest.raises(pawl.MismatchError, match="no optimizer"):
        pj.load_checkpoint("bare", like={"params": params, "opt_state": opt})


def test_trees_keep_jax_arrays():
    pawl.save_checkpoint("r", 1, {}, attachments={"t": {"x": jnp.arange(3), "b": jnp.ones(2, jnp.bfloat16)}})
    back = pawl.load_checkpoint("r").attachments["t"]
    assert isinstance(back["x"], jax.Array) and back["b"].dtype == jnp.bfloat16
