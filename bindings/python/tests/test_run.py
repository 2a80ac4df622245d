"""A run: its lock, forks, threads, callbacks, interrupts, and a training loop that is killed and resumed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pawl
import pawl.testing


def test_one_writer_a_root(python):
    with pawl.Run("r") as run:
        run.save(1, {"w": np.zeros(3)})
        with pytest.raises(pawl.BusyError) as info:
            pawl.save_checkpoint("r", 2, {})
        assert info.value.code == "busy"
        code = "import pawl\ntry: pawl.Run('r')\nexcept pawl.BusyError: print('busy')"
        assert python(code).stdout == "busy\n"
        assert pawl.load_checkpoint("r").step == 1 and run.load().step == 1 and run.latest().step == 1  # readers need no lock
    assert pawl.save_checkpoint("r", 2, {}).name == "step-000002"
    run.close()
    for call in (lambda: run.save(3, {}), lambda: run.pin(1), run.wait, lambda: run.prune(1)):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_waiting_for_the_other_writer():
    run = pawl.Run("r")
    threading.Timer(0.1, run.close).start()
    with pawl.Run("r", busy="wait") as second:
        second.save(1, {})
    assert run.steps() == [1]


def test_a_run_that_nobody_holds_lets_go():
    import gc

    run = pawl.Run("r")
    del run
    gc.collect()
    pawl.Run("r").close()


def test_what_can_be_pickled():
    with pawl.Run("r") as run, pytest.raises(TypeError, match="pickled"):
        pickle.dumps(run)


def test_on_durable_comes_after(folder):
    said = []

    def durable(step, path):
        said.append((step, (folder / "r" / "LATEST").read_text(), path.is_dir()))

    with pawl.Run("r", on_durable=durable) as run:
        run.save(5, {})
        with pawl.testing.failpoints("save/before-latest=error"), pytest.raises(OSError):
            run.save(6, {})
    assert said == [(5, "step-000005\n", True)]


def test_what_on_durable_raises_is_not_the_saves(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: seen.append(info.exc_value))
    with pawl.Run("r", on_durable=lambda step, path: 1 / 0) as run:
        run.save(1, {})
    assert isinstance(seen[0], ZeroDivisionError) and pawl.load_checkpoint("r").step == 1


def test_a_broken_step_is_quarantined():
    with pawl.Run("r") as run:
        for step in (1, 2):
            run.save(step, {"w": np.zeros(5)})
        (run.root / "step-000002" / "model.safetensors").write_bytes(b"")
        assert [p.code for p in run.verify(2)] == ["size"] and run.verify(1) == []
        with pytest.warns(pawl.Warning, match="names now step-000001"):
            moved = run.repair()
        assert moved == [run.root / "step-000002.bad"] and moved[0].is_dir()
        assert run.steps() == [1] and run.latest().step == 1
        run.save(3, {})


def test_interrupts_leave_the_previous_checkpoint(folder):
    """Goal: what progress raises, and Ctrl-C, abandon a save wherever they come, and the next one works."""
    big = {"w": np.zeros(3_000_000)}
    with pawl.Run("r") as run:
        run.save(1, big)

        def interrupt(done, total):
            signal.raise_signal(signal.SIGINT)

        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                run.save(2, big, progress=interrupt)
            with pytest.raises(ZeroDivisionError):
                run.save(2, big, progress=lambda *_: 1 / 0)
            assert sorted(os.listdir("r")) == ["LATEST", "step-000001"] and run.latest().step == 1
        calls = []
        run.save(2, big, progress=lambda done, total: calls.append((done, total)))
        assert calls[-1][0] == calls[-1][1] > 24_000_000 and run.latest().step == 2


def test_a_signal_without_a_callback_interrupts_too(python):
    """Ctrl-C is polled between buffers although nothing of Python's runs in the save."""
    done = python(
        """
import numpy as np, os, pawl, signal, threading
big = {"w": np.zeros(40_000_000)}
pawl.save_checkpoint("r", 1, {})
threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    pawl.save_checkpoint("r", 2, big)
    print("done")
except KeyboardInterrupt:
    print("interrupted", sorted(os.listdir("r")))
"""
    )
    assert done.stdout in ("interrupted ['LATEST', 'step-000001']\n", "done\n")


def test_failpoints(folder, python):
    weights = {"w": np.zeros(4)}
    pawl.save_checkpoint("r", 1, weights)
    for name in ("after-file", "before-manifest", "before-rename"):
        with pawl.testing.failpoints(f"save/{name}=error"), pytest.raises(OSError, match="failpoint"):
            pawl.save_checkpoint("r", 2, weights)
        assert pawl.load_checkpoint("r").step == 1 and sorted(os.listdir("r")) == ["LATEST", "step-000001"]
    with pawl.testing.failpoints("save/after-file=2*error; save/before-manifest=off;save/before-prune=sleep(1ms)"), pytest.raises(OSError):
        pawl.save_checkpoint("r", 2, weights)
    for name in ("after-file", "before-manifest", "before-rename", "before-latest", "before-prune"):
        code = f"import numpy, pawl, pawl.testing\nwith pawl.testing.failpoints('save/{name}=crash'): pawl.save_checkpoint('r', 2, {{'w': numpy.ones(4)}})"
        assert python(code, check=False).returncode == 137
        pawl.latest_checkpoint("r") if name == "before-prune" else None
    assert pawl.load_checkpoint("r").step == 2
    for bad in ("save/nowhere=error", "save/after-file=explode", "save/after-file", "=error"):
        with pytest.raises(pawl.ArgumentError), pawl.testing.failpoints(bad):
            pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork")
def test_a_forked_child_gets_an_error_and_never_hangs():
    """Goal: fork in the middle of a save on another thread: the child's calls raise, it ends, and lock and save stay the parent's.

    Method: the save stands in its progress callback while the main thread forks; the child has an alarm that would kill it."""
    inside, go = threading.Event(), threading.Event()

    def progress(done, total):
        inside.set()
        go.wait(20)

    run = pawl.Run("r")
    run.save(1, {"w": np.zeros(3)})
    saver = threading.Thread(target=lambda: run.save(2, {"w": np.zeros(3_000_000)}, progress=progress))
    saver.start()
    assert inside.wait(20)
    pid = os.fork()
    if pid == 0:
        status = 0
        signal.alarm(20)
        try:
            for call in (lambda: run.save(3, {}), run.wait, run.close, lambda: run.pin(1)):
                try:
                    call()
                    status = 1
                except RuntimeError as error:
                    status = status or (0 if "forked child" in str(error) else 2)
            if pawl.load_checkpoint("r").step != 1:  # readers go on
                status = 3
            try:
                pawl.Run("r")
                status = 4
            except pawl.BusyError:
                pass
        except BaseException:
            status = 5
        os._exit(status)
    _, status = os.waitpid(pid, 0)
    go.set()
    saver.join()
    assert os.waitstatus_to_exitcode(status) == 0
    with pytest.raises(pawl.BusyError):
        pawl.Run("r")  # the child's end took no lock away
    assert run.latest().step == 2
    run.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_that_outlives_its_parent_does_not_hold_the_root(python):
    """A DataLoader worker that lives on must not keep the root busy for the trainer that is started again."""
    code = """
import os, pawl, sys, time
run = pawl.Run("r")
if os.fork() == 0:
    sys.stdout.close(); sys.stderr.close(); os.close(1); os.close(2)
    time.sleep(5)
    os._exit(0)
os._exit(9)
"""
    assert python(code, check=False).returncode == 9
    pawl.Run("r").close()


@pytest.mark.filterwarnings("ignore::pawl.Warning")  # a step may be seen a moment before LATEST names it
def test_readers_beside_a_saver(is_long):
    """Goal: 8 threads load while one saves and prunes: every load is a whole step, never a mix. Method: all values of a step are its number."""
    stop = threading.Event()
    failures: list[BaseException] = []
    loads = [0] * 8

    def read(i):
        while not stop.is_set():
            try:
                c = pawl.latest_checkpoint("r")
                if c is not None:
                    loads[i] += 1
                    values = {int(v) for a in c.model.values() for v in np.unique(a)} | {c.state["tokens_seen"]}
                    if values != {c.step}:
                        raise AssertionError(f"step {c.step} holds {values}")
            except BaseException as error:
                failures.append(error)
                return

    readers = [threading.Thread(target=read, args=(i,)) for i in range(8)]
    with pawl.Run("r", keep=2) as run:
        run.save(1, {"a": np.full(500, 1), "b": np.full((3, 7), 1)}, state={"tokens_seen": 1})
        for reader in readers:
            reader.start()
        for step in range(2, 400 if is_long else 40):
            run.save(step, {"a": np.full(500, step), "b": np.full((3, 7), step)}, state={"tokens_seen": step})
        stop.set()
    for reader in readers:
        reader.join()
    assert not failures, failures[0]
    assert all(loads)


@pytest.mark.filterwarnings("ignore::pawl.Warning")  # an older step saved after a newer one is said
def test_saves_from_many_threads_are_one_after_the_other():
    with pawl.Run("r") as run:
        threads = [threading.Thread(target=run.save, args=(i, {"w": np.full(100, i)})) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert run.steps() == list(range(8))


def test_collecting_garbage_in_the_middle():
    """Objects that die in a callback, and a collection there, disturb nothing."""
    import gc

    arrays = {"w": np.arange(3_000_000.0)}

    def progress(done, total):
        arrays.clear()
        gc.collect()
        [pawl.latest_checkpoint("r") for _ in range(2)]

    with pawl.Run("r") as run:
        run.save(1, {"w": arrays["w"]}, progress=progress)
        assert run.latest().model["w"][-1] == 2_999_999


@pytest.mark.filterwarnings("ignore::pawl.Warning")  # the end may come between a step's name and LATEST
def test_exit_in_the_middle(python):
    """A daemon thread that saves while the interpreter ends: it ends, with the last durable step whole."""
    done = python(
        """
import numpy as np, os, pawl, threading, time
run = pawl.Run("r")
def forever():
    step = 0
    while True:
        step += 1
        run.save(step, {"w": np.full(300_000, step)}, progress=lambda *_: None)
threading.Thread(target=forever, daemon=True).start()
while not os.path.exists("r/LATEST"):
    time.sleep(0.01)
""",
        check=False,
        timeout=60,
    )
    assert done.returncode in (0, -signal.SIGABRT), done.stderr
    checkpoint = pawl.latest_checkpoint("r")
    assert checkpoint is not None and set(np.unique(checkpoint.model["w"])) == {checkpoint.step}


BIGRAM = '''
import sys
import numpy as np
import pawl
from pawl.tokens import TokenStream

root, steps, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
stream = TokenStream(["tokens"], 16, 4, 7)
rng = pawl.PCG32(5)
weights = {"logits": np.zeros((256, 256), "f4")}
momentum = np.zeros((256, 256), "f4")
step = 0
found = pawl.latest_checkpoint(root)
if found is not None:
    optimizer = pawl.OptimizerState("sgd", {"logits.momentum_buffer": momentum})
    found.restore(weights, optimizer, stream=stream)
    noise = found.attachments["noise"]
    rng.set_state(noise["state"])
    rng.spare = noise["spare"]
    step = found.step
with pawl.Run(root, keep=2) as run:
    while step < steps:
        inputs, targets = stream.next_batch()
        rows = weights["logits"][inputs.ravel()]
        p = np.exp(rows - rows.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        p[np.arange(p.shape[0]), targets.ravel()] -= 1
        gradient = np.zeros_like(momentum)
        np.add.at(gradient, inputs.ravel(), p / p.shape[0])
        momentum *= np.float32(0.9)
        momentum += gradient + np.float32(1e-3 * rng.normal())
        weights["logits"] -= np.float32(0.5) * momentum
        step += 1
        if step % 3 == 0 or step == steps:
            run.save(
                step, weights, pawl.OptimizerState("sgd", {"logits.momentum_buffer": momentum}, {"lr": 0.5, "momentum": 0.9}),
                stream=stream, state={"tokens_seen": step * 64}, attachments={"noise": {"state": rng.state(), "spare": rng.spare}},
            )
            import time
            time.sleep(pause)
'''


def test_a_killed_loop_ends_with_the_bytes_of_one_that_was_not(folder, seeded, is_long, entries):
    """Goal: a NumPy bigram, killed at random instants and resumed, ends with the files of the undisturbed run, bit for bit."""
    from pawl.tokens import Writer

    with Writer("tokens", 256) as writer:
        writer.add(bytes(seeded.randrange(256) for _ in range(3000)))
    (folder / "bigram.py").write_text(BIGRAM)
    run = [sys.executable, "bigram.py"]
    subprocess.run([*run, "straight", "60", "0"], check=True)
    kills = 0
    for _ in range(200):
        child = subprocess.Popen([*run, "killed", "60", "0.01"])
        latest = folder / "killed" / "LATEST"
        before = latest.read_text() if latest.exists() else ""
        deadline = time.monotonic() + 30
        while child.poll() is None and time.monotonic() < deadline:
            if latest.exists() and latest.read_text() != before and kills < (40 if is_long else 4):
                time.sleep(seeded.random() * 0.05)
                child.kill()
                break
            time.sleep(0.002)
        if child.wait() == 0:
            break
        kills += 1
    assert kills >= 3
    assert entries("killed") == entries("straight")


def test_a_process_that_does_not_write_takes_no_lock(entries):
    """What pawl.torch.Run is on other ranks than 0, without PyTorch: it reads beside the writer, and says what it does not do."""

    class Reader(pawl.Run):
        def _writes(self) -> bool:
            return False

    with Reader("none") as reader:
        assert reader.steps() == [] and reader.latest() is None
    assert not os.path.exists("none")
    with pawl.Run("r") as run, Reader("r") as reader:
        run.save(1, {"w": np.zeros(3)})
        before = entries("r")
        assert reader.steps() == [1] and reader.load().step == 1 and reader.verify(1) == []
        reader.wait()
        calls = (
            lambda: reader.save(2, {}), lambda: reader.save_async(2, {}), lambda: reader.prune(1), reader.repair, lambda: reader.pin(1),
            lambda: reader.unpin(1),
        )  # fmt: skip
        for call in calls:
            with pytest.raises(RuntimeError, match="only rank 0 saves, prunes, repairs and pins"):
                call()
        reader.close()
        with pytest.raises(RuntimeError, match="the run is closed"):
            reader.prune(1)
        reader.close()
        assert entries("r") == before
        run.save(2, {"w": np.zeros(3)})
