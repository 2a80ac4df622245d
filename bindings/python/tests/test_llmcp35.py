"""pawl.llmcp35 against the golden files: every valid one comes back byte for byte, every corrupt one is told by its category and cause."""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest

import pawl
from pawl import llmcp35

CONFIG = llmcp35.Config(vocabulary=3, width=4, heads=2, feed_forward=6, layers=2, positions=16)
PIECES = llmcp35.Tokenizer((b"a", b"\xff\x00", "é".encode()))


def filled(config: llmcp35.Config, salt: float = 0.0) -> dict[str, np.ndarray]:
    return {
        name: np.arange(np.prod(shape), dtype="f8").reshape(shape) / 7 + salt + i
        for i, (name, shape) in enumerate(llmcp35.shapes(config).items())
    }


def test_valid_files_come_back_byte_for_byte(golden, folder):
    """Goal: load and save lose nothing. Method: each valid file; its header's facts beside those of the list."""
    files = json.loads((golden / "llmcp35" / "valid.json").read_text())
    assert len(files) >= 7
    steps = set()
    for row in files:
        path = golden / "llmcp35" / row["file"]
        checkpoint = llmcp35.load(path)
        assert (checkpoint.header_bytes, checkpoint.checksum) == (row["header_bytes"], row["checksum"])
        assert checkpoint.header_bytes + checkpoint.payload_bytes == row["size"]
        assert {name: array.shape for name, array in checkpoint.parameters.items()} == llmcp35.shapes(checkpoint.config)
        assert list(checkpoint.parameters) == list(llmcp35.shapes(checkpoint.config))
        assert (len(checkpoint.first_moments) == 0) == (checkpoint.step == 0)
        llmcp35.save("copy", checkpoint)
        assert (folder / "copy").read_bytes() == path.read_bytes()
        steps.add(checkpoint.step)
    assert steps >= {0, 1, 8}


def test_valid_files_can_be_made_from_their_fields(golden, folder):
    """Goal: every field is what the file says, none is lost on the way. Method: files of step 0 and 1 made anew from the fields alone."""
    made = 0
    for row in json.loads((golden / "llmcp35" / "valid.json").read_text()):
        path = golden / "llmcp35" / row["file"]
        c = llmcp35.load(path)
        if c.step > 1:
            continue
        again = llmcp35.new(c.config, c.adamw, c.parameters, c.tokenizer, rng_state=c.rng_state)
        if c.step == 1:
            again = again.after(c.parameters, c.first_moments, c.second_moments, beta1_power=c.beta1_power, beta2_power=c.beta2_power)
        llmcp35.save("made", again)
        assert (folder / "made").read_bytes() == path.read_bytes()
        made += 1
    assert made >= 3


def test_corrupt_files_are_told(golden):
    rows = [line.split("\t") for line in (golden / "llmcp35" / "corrupt.tsv").read_text().splitlines()[1:]]
    assert len(rows) > 50
    for name, _, category, cause, *_ in rows:
        wanted = MemoryError if category == "allocation" else pawl.FormatError
        with pytest.raises(wanted) as caught:
            llmcp35.load(golden / "llmcp35" / name)
        if category != "allocation":
            assert caught.value.code == (category if cause == "-" else f"{category}/{cause}"), name
            assert caught.value.path is not None and caught.value.path.name == name.split("/")[1]


def test_the_published_fixture(golden):
    c = llmcp35.load(golden / "llmcp35" / "v1-selected-step8.bin")
    assert c.step == 8 and 0 < c.beta2_power < 1 and "step 8" in repr(c)
    assert c.tokenizer.merges is None and len(c.tokenizer.pieces) == c.config.vocabulary
    bpe = llmcp35.load(golden / "llmcp35" / "valid" / "byte-bpe-step1.bin")
    assert bpe.tokenizer.merges == ((97, 98), (256, 99))
    assert bpe.tokenizer.pieces[:3] == (b"", b"", b"\0") and bpe.tokenizer.pieces[-2:] == (b"ab", b"abc")


def test_arrays_are_of_the_checkpoint_and_outlive_it(golden):
    c = llmcp35.load(golden / "llmcp35" / "v1-selected-step8.bin")
    array = c.second_moments["final_norm.gain"]
    before = array.tolist()
    assert array.dtype == np.float64 and not array.flags.writeable and c.parameters["final_norm.gain"] is not array
    with pytest.raises(AttributeError):
        c.step = 9
    with pytest.raises(TypeError):
        c.parameters["x"] = array
    with pytest.raises(TypeError):
        llmcp35.Checkpoint()
    del c
    gc.collect()
    assert array.tolist() == before


def test_steps_are_all_or_nothing(folder):
    weights = filled(CONFIG)
    names = list(weights)
    adamw = llmcp35.AdamW(0.25, 0.5, 0.75, 1e-6, 0.125, (tuple(names[1:]), (names[0],)))
    first = llmcp35.new(CONFIG, adamw, weights, PIECES, rng_state=2**64 - 1)
    assert first.adamw == adamw._replace(groups=(tuple(sorted(names[1:])), (names[0],)))
    assert first.config == CONFIG and first.tokenizer == PIECES and first.rng_state == 2**64 - 1
    powers = {"beta1_power": 0.5, "beta2_power": 0.75}
    later = first.after(filled(CONFIG, 1), filled(CONFIG, 2), filled(CONFIG, 3), rng_state=5, **powers)
    llmcp35.save("later", later)
    again = llmcp35.load("later")
    assert (again.step, again.rng_state, again.beta1_power, again.beta2_power) == (1, 5, 0.5, 0.75)
    for salt, arrays in enumerate((again.parameters, again.first_moments, again.second_moments), 1):
        for name, array in filled(CONFIG, salt).items():
            assert (arrays[name] == array).all()
    bad = filled(CONFIG)
    bad[names[2]][0, 0] = np.nan
    with pytest.raises(pawl.Error):
        first.after(bad, weights, weights, **powers)
    with pytest.raises(pawl.ArgumentError, match="missing"):
        first.after({}, weights, weights, **powers)
    with pytest.raises(pawl.ArgumentError, match="no second moment 'more'"):
        first.after(weights, weights, {**weights, "more": np.zeros(1)}, **powers)
    with pytest.raises(pawl.ArgumentError, match="expected float64"):
        first.after({**weights, names[0]: np.zeros(2)}, weights, weights, **powers)
    with pytest.raises(pawl.ArgumentError):
        first.after(weights, weights, weights, rng_state=2**64, **powers)
    assert first.step == 0 and (first.parameters[names[2]] == weights[names[2]]).all()


def test_what_no_file_can_say():
    weights = filled(CONFIG)
    for config, code in ((CONFIG._replace(heads=3), "model/width_not_divisible"), (CONFIG._replace(positions=0), "model/zero_positions")):
        with pytest.raises(pawl.Error) as caught:
            llmcp35.new(config, llmcp35.AdamW(), weights, PIECES)
        assert caught.value.code == code
    with pytest.raises(pawl.Error) as caught:
        llmcp35.new(CONFIG, llmcp35.AdamW(), weights, llmcp35.Tokenizer((b"a", b"a", b"b")))
    assert caught.value.code == "tokenizer/repeated_spelling"
    with pytest.raises(pawl.Error) as caught:
        llmcp35.new(CONFIG, llmcp35.AdamW(), weights, llmcp35.Tokenizer((b"a",)))
    assert caught.value.code == "vocabulary_mismatch"
    with pytest.raises(pawl.ArgumentError):
        llmcp35.new(CONFIG._replace(layers=-1), llmcp35.AdamW(), weights, PIECES)
    with pytest.raises(pawl.ArgumentError, match="layers"):
        llmcp35.new(CONFIG._replace(layers=2**40), llmcp35.AdamW(), weights, PIECES)
    with pytest.raises(pawl.ArgumentError):
        llmcp35.new(CONFIG, llmcp35.AdamW(), weights, llmcp35.Tokenizer((), ((2**32, 0),)))


def test_failures_of_the_system(folder):
    checkpoint = llmcp35.new(CONFIG, llmcp35.AdamW(), filled(CONFIG), PIECES)
    with pytest.raises(FileNotFoundError):
        llmcp35.load("nowhere")
    with pytest.raises(OSError):
        llmcp35.save("nowhere/file", checkpoint)
    with pytest.raises(TypeError):
        llmcp35.save("file", {"step": 1})
