"""Saves in the background: what may change when, callbacks, errors that are never lost, exit, fork, asyncio, kills."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import pawl
import pawl.testing


class Gate:
    """A failpoint that stops the save where it is, until it is opened."""

    def __init__(self, point: str) -> None:
        self.point, self.reached, self.opened, self.answer = point, threading.Event(), threading.Event(), 0

    def __call__(self, name: str) -> int:
        if name != self.point:
            return 0
        self.reached.set()
        assert self.opened.wait(30)
        return self.answer

    def open(self) -> None:
        self.opened.set()


@pytest.fixture
def gate(monkeypatch):
    """Saves that begin from now on stop at a point. Opened at the end of the test whatever happens."""
    gates = []

    def close(point="save/before-rename"):
        gates.append(Gate(point))
        monkeypatch.setattr("pawl._failpoints.in_force", lambda: gates[-1])
        return gates[-1]

    yield close
    for one in gates:
        one.open()


@pytest.fixture
def unraised(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: seen.append(info))
    return seen


def failing(run, step=2, point="save/before-rename"):
    """A save in the background that has failed, and that nobody has asked about."""
    with pawl.testing.failpoints(f"{point}=error"):
        save = run.save_async(step, {"w": np.zeros(3)})
    save._finished.wait(30)
    return save


# ---- what may change, and when ----


def test_copied_arrays_may_change_at_once(gate):
    """Goal: the step holds what the arrays held at the call: whole arrays, single elements, views, maps, numbers, trees, generators."""
    np.save("m.npy", np.arange(50.0))
    mapped = np.load("m.npy", mmap_mode="r+")
    whole, big = np.zeros(1000), np.arange(12.0).astype(">f8")
    turned, scalar, tree, state = np.arange(6).reshape(2, 3), np.array(7), {"a": [np.ones(2), 1]}, {"tokens_seen": 5}
    rng = pawl.PCG32(3)
    words = rng.state()
    optimizer = pawl.OptimizerState("sgd", {"whole.m": np.full(3, 4.0)}, {"lr": 0.5})
    stop = gate("save/after-file")
    with pawl.Run("r") as run:
        save = run.save_async(
            1, {"whole": whole, "turned": turned.T, "mapped": mapped, "scalar": scalar, "big": big, "part": whole[10:20:3]}, optimizer,
            rng=rng, state=state, attachments={"t": tree}, metrics={"loss": 1.0},
        )  # fmt: skip
        assert save.released(0) and save.stage() == "released"
        whole[:] = 1
        whole[13] = np.nan
        turned[0, 0] = 99
        mapped[7] = -1
        scalar[()] = 8
        big *= 2
        optimizer.tensors["whole.m"][1], optimizer.scalars["lr"], tree["a"][1], state["tokens_seen"] = 9, 0.1, 2, 6
        tree["a"][0][:] = 5
        rng.next_u32()
        stop.open()
        assert save.wait() == run.root / "step-000001"
    found = pawl.load_checkpoint("r")
    assert not found.model["whole"].any() and not found.model["part"].any()
    assert found.model["turned"].tolist() == [[0, 3], [1, 4], [2, 5]] and found.model["scalar"] == 7
    assert (found.model["mapped"] == np.arange(50)).all() and (found.model["big"] == np.arange(12)).all()
    assert found.optimizer.tensors["whole.m"].tolist() == [4, 4, 4] and found.optimizer.scalars["lr"] == 0.5
    assert found.rng == words and found.state["tokens_seen"] == 5 and found.attachments["t"]["a"][1] == 1
    assert found.attachments["t"]["a"][0].tolist() == [1, 1]


def test_borrowed_arrays_live_until_they_are_released(gate):
    import weakref

    class Tracked(np.ndarray):
        pass

    array = np.arange(100_000.0).view(Tracked)
    alive = weakref.ref(array)
    stop = gate("save/after-file")
    with pawl.Run("r", snapshot="borrow") as run:
        state = {"tokens_seen": 1}
        save = run.save_async(1, {"a": array, "b": np.arange(3)}, state=state)
        state["tokens_seen"] = 2
        del array
        assert stop.reached.wait(30)
        gc.collect()
        assert save.stage() == "accepted" and not save.released(0) and not save.released(0.01) and alive() is not None
        stop.open()
        assert save.released() and save.released(0)
        gc.collect()
        assert alive() is None
        save.wait()
    found = pawl.load_checkpoint("r")
    assert (found.model["a"] == np.arange(100_000)).all() and found.state["tokens_seen"] == 1


def test_what_holds_before_the_thread_that_follows_a_save_has_run(monkeypatch):
    """Goal: a copy is released when the call returns; an end counts when it can be asked for. Method: the thread does not begin."""
    with pawl.Run("r") as run:
        begun = []
        monkeypatch.setattr(threading.Thread, "start", lambda self: begun.append(self))
        save = run.save_async(1, {"w": np.zeros(3)})
        assert save.released(0) and not save.done()
        assert save._inner.wait(30_000) and save.stage() == "written" and not save.done()
        monkeypatch.undo()
        begun[0].start()


def test_a_borrowed_save_that_fails_lets_go(unraised):
    array = np.arange(100_000.0)
    before = sys.getrefcount(array)
    with pawl.Run("r", snapshot="borrow") as run:
        save = failing_of(run, {"a": array})
        assert isinstance(save.exception(), OSError) and save.released(0) and save.stage() == "failed"
        assert sys.getrefcount(array) == before
        with pytest.raises(pawl.ArgumentError):
            run.save_async(1, {"a": array}, state={"nothing": 1})
        assert sys.getrefcount(array) == before


def failing_of(run, model):
    with pawl.testing.failpoints("save/after-file=error"):
        return run.save_async(1, model)


def test_what_is_refused_is_refused_at_once():
    with pytest.raises(pawl.ArgumentError, match="'copy' or 'borrow'"):
        pawl.Run("r", snapshot="fork")
    with pawl.Run("r") as run:
        for call in (
            lambda: run.save_async(-1, {}),
            lambda: run.save_async(1, {"w": np.zeros(2)}, metrics={"loss": float("nan")}),
            lambda: run.save_async(1, {"w": np.zeros(2)}, attachments={"t": object()}),
        ):
            with pytest.raises(pawl.ArgumentError):
                call()
        assert os.listdir("r") == []
    with pytest.raises(RuntimeError, match="closed"):
        run.save_async(1, {})


def test_a_save_in_the_background_is_the_same_save(entries):
    arrays = {"w": np.arange(100_000, dtype="f4"), "n": np.arange(7, dtype=np.uint16), "e": np.zeros((0, 3))}
    more = {"rng": (5, 7), "state": {"lr": 0.1}, "metrics": {"loss": 2.0}, "attachments": {"t": {"x": np.ones(3)}}, "config": {"a": 1}}
    for root, snapshot in (("a", "copy"), ("b", "borrow")):
        with pawl.Run(root, snapshot=snapshot) as run:
            run.save_async(3, arrays, **more)
    with pawl.Run("c") as run:
        run.save(3, arrays, **more)
    assert entries("a") == entries("b") == entries("c")


# ---- the handle ----


def test_the_handle_tells(gate):
    stop = gate()
    with pawl.Run("r") as run:
        save = run.save_async(4, {"w": np.zeros(100_000)})
        assert save.step == 4 and save.path == run.root / "step-000004" and not save.done()
        assert stop.reached.wait(30)
        assert save.stage() == "written" and save.progress()[1] >= 800_000
        for call in (save.wait, save.exception):
            with pytest.raises(TimeoutError, match="step 4"):
                call(0.01)
        assert "step 4" in repr(save) and "written" in repr(save)
        assert run.steps() == [] and run.latest() is None  # readers do not wait
        stop.open()
        assert save.wait(30) == save.path and save.exception() is None and save.done() and save.stage() == "durable"
        done, total = save.progress()
        assert done == total and not save.cancel()
    assert save.wait(0) == save.path  # the handle outlives the run


def test_cancel(gate):
    stop = gate("save/after-file")
    heard = []
    with pawl.Run("r", on_durable=lambda *_: heard.append("durable")) as run:
        run.save_async(1, {"w": np.zeros(3)}).add_done_callback(lambda save: heard.append(save.stage()))
        stop.open()
        run.wait()
        stop = gate("save/after-file")
        save = run.save_async(2, {"w": np.ones(3)})
        save.add_done_callback(lambda save: heard.append(save.stage()))
        assert stop.reached.wait(30) and save.cancel()
        stop.open()
        with pytest.raises(pawl.CanceledError):
            save.wait()
        assert isinstance(save.exception(), pawl.CanceledError) and save.stage() == "canceled" and save.cancel()
        run.wait()  # it is no error
        assert heard == ["durable", "durable", "canceled"] and run.steps() == [1]
        unasked = run.save_async(3, {})
        unasked.cancel()
        gate().open()
        run.save(4, {})


def test_pickles_are_refused():
    with pawl.Run("r") as run:
        save = run.save_async(1, {})
        for call in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="can't be pickled"):
                call(save)
            with pytest.raises(TypeError, match="can't be pickled"):
                call(run)


def test_one_is_in_flight_and_the_next_waits(gate, python):
    stop = gate()
    with pawl.Run("r") as run:
        first = run.save_async(1, {"w": np.zeros(3)})
        assert stop.reached.wait(30)
        code = "import pawl\ntry: pawl.save_checkpoint('r', 9, {})\nexcept pawl.BusyError as e: print(e.code)"
        assert python(code).stdout == "busy\n"  # another process does not wait
        order = []
        calls = [lambda: order.append(run.save_async(2, {}).step), lambda: order.append(run.save(3, {}).name), run.wait, lambda: run.pin(7)]
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        assert not first.done() and not order
        gate("save/nowhere")
        stop.open()
        for thread in threads:
            thread.join(30)
        assert first.done() and sorted(map(str, order)) == ["2", "step-000003"]
    assert sorted(pawl.Run("r").steps()) == [1, 2, 3]


def test_many_threads_save_and_wait():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pawl.Warning)  # an older step saved after a newer one is said
        with pawl.Run("r") as run:
            ends = []
            threads = [threading.Thread(target=lambda i=i: ends.append(run.save_async(i, {"w": np.full(1000, i)}).wait())) for i in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(ends) == 12 and run.steps() == list(range(12))
        for i in range(12):
            assert (pawl.load_checkpoint("r", i).model["w"] == i).all()


# ---- callbacks ----


def test_callbacks_come_in_order_from_one_thread(folder):
    heard = []
    me = threading.get_ident()

    def durable(step, path):
        heard.append((step, (folder / "r" / "LATEST").read_text(), path.is_dir(), threading.get_ident()))

    with pawl.Run("r", on_durable=durable) as run:
        save = run.save_async(5, {"w": np.zeros(10)})
        save.add_done_callback(lambda s: heard.append((s is save, s.wait(0), s.exception(), threading.get_ident())))
        run.wait()
        assert [item[:3] for item in heard] == [(5, "step-000005\n", True), (True, save.path, None)]
        assert heard[0][-1] == heard[1][-1] != me
        save.add_done_callback(lambda s: heard.append(threading.get_ident()))
        assert heard[-1] == me  # it was over


def test_a_callback_that_would_wait_for_its_save_gets_an_error(gate):
    """Goal: never a hang, whether it is on_durable, a done callback or progress; what does not wait may be called."""
    answers = []

    def attempt(run):
        calls = {
            "save": lambda: run.save(9, {}), "save_async": lambda: run.save_async(9, {}), "wait": run.wait, "close": run.close,
            "pin": lambda: run.pin(1), "unpin": lambda: run.unpin(1), "prune": lambda: run.prune(1), "repair": run.repair,
        }  # fmt: skip
        for name, call in calls.items():
            try:
                call()
                answers.append(name)
            except RuntimeError as error:
                assert "callback" in str(error)
        answers.append([run.steps(), run.verify(1), run.latest() is None])
        with pawl.Run("other") as other:
            answers.append(other.save_async(1, {}).wait().name)

    stop = gate()
    run = pawl.Run("r", on_durable=lambda step, path: attempt(run))
    save = run.save_async(1, {})
    save.add_done_callback(lambda save: attempt(run))
    stop.open()
    waiter = threading.Thread(target=run.wait)  # has the run's lock meanwhile
    waiter.start()
    waiter.join(60)
    assert not waiter.is_alive() and answers == [[[1], [], False], "step-000001"] * 2

    def progress(done, total):
        for call in (held[0].wait, held[0].exception, run.wait):
            with pytest.raises(RuntimeError, match="callback"):
                call()
        answers.append(held[0].stage())

    held: list[pawl.Save] = []
    stop = gate("save/after-file")
    held.append(run.save_async(2, {"w": np.zeros(10)}, progress=progress))
    while "released" not in answers:
        time.sleep(0.01)
    stop.open()
    run.close()
    assert held[0].stage() == "durable"


def test_a_callback_of_a_save_in_the_foreground_gets_an_error_too():
    with pawl.Run("r") as run:
        errors = []

        def progress(done, total):
            for call in (lambda: run.save(2, {}), lambda: run.save_async(2, {}), run.wait, run.close):
                with pytest.raises(RuntimeError, match="in the middle"):
                    call()
                errors.append(1)

        run.save(1, {"w": np.zeros(3_000_000)}, progress=progress)
        assert errors and run.steps() == [1]


def test_what_a_callback_raises_is_not_the_saves(unraised):
    def broken(*_):
        raise ZeroDivisionError

    def leaves(_):
        raise SystemExit(3)

    with pawl.Run("r", on_durable=broken) as run:
        save = run.save_async(1, {})
        save.add_done_callback(broken)
        save.add_done_callback(leaves)
        run.wait()
        save.add_done_callback(broken)
        assert [info.exc_type for info in unraised] == [ZeroDivisionError] * 2 + [SystemExit, ZeroDivisionError]
        assert unraised[0].object is broken and save.wait() == save.path and run.latest().step == 1


def test_the_usual_hook_takes_it(python):
    code = """
import pawl
with pawl.Run("r", on_durable=lambda step, path: 1 / 0) as run:
    run.save(1, {})
    run.save_async(2, {})
print(run.root, [s for s in pawl.Run("r").steps()])
"""
    done = python(code)
    assert done.stdout == "r [1, 2]\n" and done.stderr.count("ZeroDivisionError: division by zero") == 2


def test_progress_and_what_it_raises(gate, unraised):
    big = {"w": np.zeros(1_000_000)}
    calls = []
    with pawl.Run("r") as run:
        run.save_async(1, big, progress=lambda done, total: calls.append((done, total, threading.get_ident()))).wait()
        assert calls[-1][0] == calls[-1][1] > 8_000_000 and calls[-1][2] != threading.get_ident()
        stop = gate("save/after-file")

        def broken(done, total):
            stop.open()
            raise ZeroDivisionError("enough")

        for snapshot in (run, pawl.Run("borrowing", snapshot="borrow")):
            stop = gate("save/after-file")
            save = snapshot.save_async(2, big, progress=broken)
            with pytest.raises(ZeroDivisionError, match="enough"):
                save.wait(60)
            assert save.stage() == "canceled"
        assert run.steps() == [1] and not unraised
        gate("save/nowhere")
        run.save_async(3, {}, progress=lambda *_: 1 / 0).wait()  # its last call: too late
        run.wait()
        assert [info.exc_type for info in unraised] == [ZeroDivisionError] and run.steps() == [1, 3]


def test_what_a_background_save_has_to_say_is_a_warning_at_the_users_line():
    with pawl.Run("r") as run:
        run.save_async(5, {}).wait()
        with pytest.warns(pawl.Warning, match="step-000005") as caught:
            line = sys._getframe().f_lineno + 1
            run.save_async(3, {})
            run.wait()
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_a_warning_that_is_an_error_is_not_the_saves(unraised):
    with pawl.Run("r") as run, warnings.catch_warnings():
        warnings.simplefilter("error", pawl.Warning)
        run.save_async(5, {})
        assert run.save_async(3, {}).wait().name == "step-000003"
        run.wait()
    assert [info.exc_type for info in unraised] == [pawl.Warning]


# ---- errors ----


def test_an_error_that_nobody_asked_for_is_raised_by_the_next_call():
    run = pawl.Run("r")
    run.save(1, {})
    for call in (lambda: run.save(3, {}), lambda: run.save_async(3, {}), run.wait):
        save = failing(run)
        run.pin(1)  # waits, and is no place for it
        with pytest.raises(OSError, match="failpoint") as info:
            call()
        assert any("step 2" in note and "nobody had asked" in note for note in info.value.__notes__)
        assert run.steps() == [1]  # the call did nothing else
        assert save.exception() is info.value
        run.wait()  # once
    failing(run)
    with pytest.raises(OSError, match="failpoint"):
        run.close()
    pawl.Run("r").close()  # it is closed all the same
    run.close()


def test_an_error_that_was_asked_for_is_not_raised_again(unraised):
    with pawl.Run("r") as run:
        for ask in (lambda save: save.exception(), lambda save: pytest.raises(OSError, save.wait)):
            save = failing(run)
            ask(save)
            with pytest.raises(OSError):  # again, from the handle itself
                save.wait()
            run.save(3, {})
    assert not unraised


def test_a_callback_that_looked_has_been_told(unraised):
    with pawl.Run("r") as run:
        seen = []
        with pawl.testing.failpoints("save/before-rename=error"):
            run.save_async(2, {}).add_done_callback(lambda save: seen.append(save.exception()))
        run.save(3, {})
    assert isinstance(seen[0], OSError) and not unraised


def test_an_error_leaves_the_body_with_the_bodys():
    with pytest.raises(OSError, match="failpoint") as info, pawl.Run("r") as run:
        failing(run)
        raise ZeroDivisionError
    assert isinstance(info.value.__context__, ZeroDivisionError)


def test_an_error_of_what_nobody_holds_goes_to_the_hook(unraised):
    run = pawl.Run("r")
    save = failing(run)
    name = repr(save)
    del run
    gc.collect()
    assert not unraised  # somebody may ask the handle still
    del save
    gc.collect()
    assert isinstance(unraised[0].exc_value, OSError) and "step 2" in name


def test_a_run_that_nobody_holds_closes_itself_after_its_save(gate):
    stop = gate()
    run = pawl.Run("r", snapshot="borrow")
    save = run.save_async(1, {"w": np.arange(1000)})
    del run
    gc.collect()
    with pytest.raises(pawl.BusyError):
        pawl.Run("r")
    stop.open()
    save.wait()
    with pawl.Run("r", busy="wait") as again:  # a moment later
        assert (again.latest().model["w"] == np.arange(1000)).all()


# ---- leaving ----

LEAVING = """
import atexit, sys, threading, time
import numpy as np
{before}
import pawl, pawl.testing
run = pawl.Run("r", snapshot={snapshot!r}, on_durable=lambda step, path: print("durable", step, flush=True))
with pawl.testing.failpoints({points!r}):
    save = run.save_async(1, {{"w": np.arange(300_000)}})
save.add_done_callback(lambda save: print(save.stage(), flush=True))
{after}
"""


@pytest.mark.parametrize("snapshot", ["copy", "borrow"])
@pytest.mark.parametrize("after", ["", "del run, save", "raise SystemExit(0)", "run = None; sys.modules.clear()"])
def test_exit_waits_for_the_save_in_flight(python, snapshot, after):
    done = python(LEAVING.format(before="", after=after, snapshot=snapshot, points="save/before-rename=sleep(200ms)"))
    assert done.stdout == "durable 1\ndurable\n" and done.stderr == ""
    assert (pawl.load_checkpoint("r").model["w"] == np.arange(300_000)).all()


@pytest.mark.parametrize("after", ["", "del run", "del run, save", "raise SystemExit(0)"])
def test_exit_tells_an_error_that_nobody_asked_for(python, after):
    done = python(LEAVING.format(before="", after=after, snapshot="copy", points="save/before-rename=error"))
    assert done.stdout == "failed\n"
    assert done.stderr.count("failpoint 'save/before-rename'") == 1 and "<pawl.Save step 1 at r/step-000001: failed>" in done.stderr
    assert pawl.latest_checkpoint("r") is None


def test_exit_calls_back_before_its_handlers(python):
    """What a callback uses (a log, a connection) is still there: handlers of exit close it later."""
    after = "atexit.register(lambda: print('closed', flush=True))"
    done = python(LEAVING.format(before="", after=after, snapshot="copy", points="save/before-rename=sleep(200ms)"))
    assert done.stdout == "durable 1\ndurable\nclosed\n"


def test_exit_with_an_error_that_was_asked_for_is_quiet(python):
    done = python(LEAVING.format(before="", after="save.exception()", snapshot="copy", points="save/before-rename=error"))
    assert done.stderr == ""


def test_a_save_after_the_interpreter_has_waited_is_carried_out_at_once(python):
    """Handlers of exit run in reverse: one that was there before pawl runs behind its own."""
    before = """
def late():
    save = run.save_async(2, {"w": np.zeros(3)})
    print("late", save.done(), save.wait().name)
atexit.register(late)
"""
    done = python(LEAVING.format(before=before, after="run.wait()", snapshot="copy", points=""))
    assert done.stdout == "durable 1\ndurable\ndurable 2\nlate True step-000002\n" and done.stderr == ""


def test_a_daemon_that_saves_while_the_interpreter_ends(python):
    """Method: many times, as it ends somewhere else each time; what is there is whole."""
    code = """
import numpy as np, os, pawl, threading
run = pawl.Run("r", keep=2)
def forever():
    step = 0
    while True:
        step += 1
        save = run.save_async(step, {"w": np.full(30_000, step)})
        save.add_done_callback(lambda save: None)
threading.Thread(target=forever, daemon=True).start()
while not os.path.exists("r/LATEST"):
    pass
"""
    for _ in range(5):
        done = python(code, check=False, timeout=60)
        assert done.returncode in (0, -signal.SIGABRT), done.stderr
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pawl.Warning)
            found = pawl.latest_checkpoint("r")
        assert found is not None and set(np.unique(found.model["w"])) == {found.step}
        subprocess.run(["rm", "-r", "r"], check=True)


def test_interrupts_end_the_wait_and_not_the_save(gate):
    stop = gate()
    with pawl.Run("r") as run:
        save = run.save_async(1, {"w": np.zeros(3)})
        assert stop.reached.wait(30)
        for call in (save.wait, save.exception, run.wait, lambda: run.save(2, {}), lambda: run.save_async(2, {})):
            threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                call()
            assert not save.done()
        stop.open()
        assert save.wait() == save.path and run.steps() == [1]


def test_where_no_thread_can_be_had_the_save_is_carried_out_at_once(monkeypatch, gate, unraised):
    def no_thread(self):
        raise RuntimeError("can't start new thread")

    heard = []
    with pawl.Run("r", on_durable=lambda step, path: heard.append(step)) as run:
        monkeypatch.setattr(threading.Thread, "start", no_thread)
        assert run.save_async(1, {"w": np.zeros(3)}).done() and heard == [1]
        run.save_async(2, {}, progress=lambda *_: run.pin(1))  # its last call
        assert unraised.pop().exc_type is RuntimeError
        with pawl.testing.failpoints("save/before-rename=error"):
            run.save_async(3, {})
        with pytest.raises(OSError, match="failpoint"):
            run.wait()

        # An interrupt comes through when the save has ended, and all of it was told.
        stop = gate()
        stop.open()
        monkeypatch.setattr(Gate, "__call__", lambda self, name: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT) or 0)
        with pytest.raises(KeyboardInterrupt):
            run.save_async(4, {})
        monkeypatch.undo()
        run.save_async(5, {})
    assert heard == [1, 2, 4, 5] and not unraised


# ---- forks ----

FORKED = """
import os, signal, sys, threading
import numpy as np
import pawl, pawl._failpoints
reached, opened = threading.Event(), threading.Event()
def gate(name):
    if name == "save/before-rename":
        reached.set()
        assert opened.wait(30)
    return 0
pawl._failpoints.in_force = lambda: gate
run = pawl.Run("r", snapshot="borrow", on_durable=lambda step, path: print("durable", step, os.getpid() == parent, flush=True))
parent = os.getpid()
save = run.save_async(1, {"w": np.arange(1000)})
reached.wait(30)
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    bad = []
    calls = {"stage": save.stage, "wait": save.wait, "exception": save.exception, "done": save.done, "cancel": save.cancel,
             "progress": save.progress, "released": save.released, "callback": lambda: save.add_done_callback(print),
             "run.wait": run.wait, "run.save": lambda: run.save(2, {}), "run.save_async": lambda: run.save_async(2, {}), "run.close": run.close}
    for name, call in calls.items():
        try:
            call()
            bad.append(name)
        except RuntimeError as error:
            if "process" not in str(error):
                bad.append((name, error))
    if bad or "another process" not in repr(save):
        print(bad, flush=True)
        os._exit(7)
    LEAVE
child = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert not save.done()
opened.set()
save.wait()
run.close()
print(child, save.path.name, flush=True)
"""


@pytest.mark.parametrize(
    "leave",
    ["sys.exit(4)", "del run, save; import gc; gc.collect(); sys.exit(4)", "os._exit(4)", "os.abort()",
     "os._exit(4 if pawl._pawl.leave() else 8)"],  # a callback of the parent's is no call of the child's
)  # fmt: skip
def test_a_fork_does_not_disturb_the_save(python, leave):
    """Goal: in the child every call raises, at once, and it ends, whichever way; the parent's save becomes durable."""
    done = python(FORKED.replace("LEAVE", leave))
    assert done.stdout.splitlines() == ["durable 1 True", f"{-6 if 'abort' in leave else 4} step-000001"]
    assert (pawl.load_checkpoint("r").model["w"] == np.arange(1000)).all()


# ---- asyncio ----


def test_await(gate):
    problems = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        stop = gate()
        with pawl.Run("r") as run:
            save = run.save_async(1, {"w": np.zeros(3)})
            turns = 0
            task = asyncio.ensure_future(save)
            while not stop.reached.is_set() or turns < 5:
                turns += 1
                await asyncio.sleep(0)
            assert not task.done()
            given_up = asyncio.ensure_future(save)
            await asyncio.sleep(0)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(save, 0.01)
            assert not save.done()
            stop.open()
            assert await task == save.path and await save == save.path
            assert await asyncio.gather(save, save) == [save.path] * 2
            stop = gate()
            save = run.save_async(2, {})
            assert save.cancel()
            stop.open()
            with pytest.raises(pawl.CanceledError):
                await save

    asyncio.run(main())
    assert not problems


def test_await_raises_what_the_save_raised():
    async def main(run):
        with pawl.testing.failpoints("save/before-rename=error"):
            save = run.save_async(2, {})
        with pytest.raises(OSError, match="failpoint"):
            await save

    with pawl.Run("r") as run:
        asyncio.run(main(run))
        run.save(3, {})  # it was told


def test_a_loop_that_is_closed_does_not_matter(gate, unraised):
    stop = gate()
    with pawl.Run("r") as run:
        save = run.save_async(1, {})

        async def main():
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(save, 0.01)

        asyncio.run(main())
        stop.open()
        assert save.wait() == save.path
        run.wait()
    assert not unraised


# ---- many ----


def test_memory_and_descriptors_stay_flat(is_long):
    def resident() -> int:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    weights = {"w": np.zeros(50_000), "t": np.zeros((100, 40)).T}
    for snapshot, warm, n in (("copy", 40, 200), ("borrow", 20, 60)):
        with pawl.Run(snapshot, keep=1, snapshot=snapshot) as run:

            def some(n, run=run):
                for i in range(n):
                    save = run.save_async(i, weights, attachments={"t": {"x": [1, np.ones(3)]}}, progress=lambda *_: None)
                    save.add_done_callback(lambda save: save.stage())
                    if i % 3 == 0:
                        save.released()
                        weights["w"][i] = i
                    if i % 7 == 0:
                        save.cancel()
                run.wait()
                gc.collect()

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pawl.Warning)
                some(warm)
                before = resident(), len(os.listdir("/proc/self/fd")), threading.active_count()
                some(10 * n if is_long else n)
            assert len(os.listdir("/proc/self/fd")) == before[1] and threading.active_count() <= before[2]
            assert resident() - before[0] < 3_000_000  # one set of these arrays would be 430 kB a save
            assert len(pawl._save._alive) < 5


KILLED = """
import sys, numpy as np, pawl
found = pawl.latest_checkpoint("r")
step = 0 if found is None else found.step
if found is not None:
    assert {int(v) for a in found.model.values() for v in np.unique(a)} | {found.state["tokens_seen"]} == {step}, found
weights = {"a": np.zeros(3000), "b": np.zeros((7, 50), "f4")}
with pawl.Run("r", keep=2, snapshot=sys.argv[1], on_durable=lambda step, path: print(step, flush=True)) as run:
    for step in range(step + 1, step + 51):
        for array in weights.values():
            array[...] = step
        save = run.save_async(step, weights, state={"tokens_seen": step})
        save.released()
        for array in weights.values():
            array[...] = -1
"""


@pytest.mark.filterwarnings("ignore::pawl.Warning")
@pytest.mark.parametrize("snapshot", ["copy", "borrow"])
def test_killed_at_random_every_load_is_a_whole_step(folder, seeded, is_long, snapshot):
    """Goal: 50 saves back to back, their arrays changed at once, killed at random: a load is a step as it was, and none that was told is lost."""
    (folder / "killed.py").write_text(KILLED)
    told = 0
    for _ in range(40 if is_long else 5):
        lines = []
        stop_after = seeded.randrange(50)
        command = [sys.executable, "-W", "ignore", "killed.py", snapshot]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                lines.append(line)
                if len(lines) > stop_after:
                    time.sleep(seeded.random() * 0.01)
                    child.kill()
        assert child.returncode in (0, -signal.SIGKILL)
        whole = [int(line) for line in lines if line.endswith("\n")]
        told = max([told, *whole])
        found = pawl.latest_checkpoint("r")
        assert found is not None and found.step >= told
        assert {int(v) for a in found.model.values() for v in np.unique(a)} == {found.step}


@pytest.mark.filterwarnings("ignore::pawl.Warning")
@pytest.mark.parametrize("point", ["after-file", "before-manifest", "before-rename", "before-latest", "before-prune"])
def test_failpoints_in_the_background(python, point):
    with pawl.Run("r") as run:
        run.save(1, {"w": np.zeros(4)})
        with pawl.testing.failpoints(f"save/{point}=error"):
            save = run.save_async(2, {"w": np.ones(4)})
        if point == "before-prune":
            assert save.wait().name == "step-000002"  # what is not deleted is a warning
        else:
            with pytest.raises(OSError, match=f"failpoint 'save/{point}'"):
                save.wait()
        run.save(3, {})
    code = f"import numpy, pawl, pawl.testing\nwith pawl.testing.failpoints('save/{point}=crash'): pawl.Run('q').save_async(2, {{}}).wait()"
    assert python(code, check=False).returncode == 137
