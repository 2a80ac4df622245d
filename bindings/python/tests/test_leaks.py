"""Saves, loads and failures by the thousand: memory and descriptors stay flat."""

from __future__ import annotations

import gc
import os
import warnings

import numpy as np

import pawl
import pawl.numpy
import pawl.tokens


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def once(i: int, weights: dict[str, np.ndarray], stream: pawl.tokens.TokenStream) -> None:
    data = pawl.numpy.save({"a": weights["w"], "b": weights["w"].T, "c": weights["w"]}, {"k": "v"}, dtypes={"a": "BF16"})
    pawl.numpy.load(data)
    pawl.numpy.save_file(weights, "f", durable=False)
    mapped = pawl.numpy.load_file("f", copy=False)
    with pawl.safe_open("f") as f:
        f.get_slice("w")[1:, ::-1]
        for bad in (lambda: f.get_tensor("x"), lambda: f.get_slice("w")[99], lambda: pawl.numpy.load(data[:-1]), lambda: pawl.numpy.load_file("x")):
            try:
                bad()
            except (pawl.Error, OSError):
                pass
    stream.next_batch()
    pawl.PCG32(i).normal()
    del mapped
    if i % 20 == 0:
        pawl.save_checkpoint("r", i, weights, rng=(i, 1), stream=None, attachments={"t": {"x": weights["w"]}}, keep=1)
        pawl.load_checkpoint("r", copy=i % 40 == 0).attachments["t"]
        try:
            pawl.save_checkpoint("r", i, weights, progress=lambda *_: 1 / 0)
        except ZeroDivisionError:
            pass
        pawl.verify("r")


def test_memory_and_descriptors_stay_flat(is_long):
    """Method: run warm, measure, run on, measure again: 10,000 rounds in --long, fewer else."""
    warnings.simplefilter("ignore", pawl.Warning)
    weights = {"w": np.arange(5000, dtype="f4").reshape(50, 100)}
    with pawl.tokens.Writer("ids", None) as writer:
        writer.add(range(500))
    stream = pawl.tokens.TokenStream(["ids"], 8, 4)
    rounds = 10_000 if is_long else 400
    for i in range(200):
        once(i, weights, stream)
    gc.collect()
    before, open_before = resident(), descriptors()
    for i in range(200, 200 + rounds):
        once(i, weights, stream)
    gc.collect()
    assert descriptors() == open_before
    # One array of these would be 40 kB a round; a struct of a hundred bytes 40 kB in all.
    assert resident() - before < 4_000_000
