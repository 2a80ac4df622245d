"""bench_save_peers.py: durable, asynchronous and verified: Pawl beside what people save and load checkpoints with, in turn.

    build/peers-saves/bin/python bench/bench_save_peers.py --library build/release/libpawl.so --limits build/release/bench/bench_limits
        [--dir DIR] [--bytes N] [--rounds N] [--only save|async|load] [--ways REGEX] [--json]
    ... --merge RESULT.json RESULT.json ...

scripts/peers --saves makes the environment; a peer that can't be imported is left out. One state for all: 147 tensors of one size that
together have N bytes (default 1 GiB), a third of them the model's, in memory that NumPy and PyTorch share. Every way of saving is taken once,
in small, before the rounds; every other round goes backwards; what is dirty is synced before each turn, free memory is made ready (Spare), and
what was written is removed after it. Medians, and medians of the ratios of each round. A round of all ways takes a minute or two: --ways chooses,
and --merge sums up the rounds of several runs of the same ways.

save   From the call until durable. A peer's files and directories are synced with fsync where it does not do it. `one` file, `split`: model and
       optimizer, 1 : 2, `cut`: files of 512 MiB, but two at least. With sha256: hashlib over the file's bytes, beside the fsync. With threads: every file by one of its own,
       which a caller of the library has to write; else one file after the other. A peer that knows no layouts stands under `one`.
async  The stall of the call and the time until durable, with nothing else to do; and what one save adds to a loop that keeps all cores busy:
       the loop's time with a save in it, less its iterations at the median pace of the loops before and after. The loop goes on until the save is durable.
load   Into memory, every page touched: from an empty cache (after fsync and POSIX_FADV_DONTNEED) and from a full one (after reading all of it). `restore` is into the
       memory of the tensors; the others make new ones.

The limits are those of bench_limits, of the same rounds: for a save the lower of writing and hashing, for a load that of reading and hashing.
Numbers are of a machine that may have other work, and nothing is asserted.
"""
import argparse
import contextlib
import ctypes
import gc
import hashlib
import json
import logging
import mmap
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "interop"))
from pawl_run import BORROW, COPY, Engine  # noqa: E402

try:
    import torch
    import torch.distributed.checkpoint as dcp
    from safetensors.torch import load_file, save_file
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
except ImportError:
    torch = None
    from safetensors.numpy import load_file, save_file
try:
    import jax
    import orbax.checkpoint as orbax
except ImportError:
    jax = None
try:
    import pawl
    import pawl.numpy
except ImportError:
    pawl = None

TENSORS = 147
LAYOUTS = ("one", "split", "cut")
PAGE = 4096
SMALL = 64 << 20  # below it there is nothing to measure, only to try
BACKGROUND = ("stall", "durable", "loop_stall", "loop_durable", "added")  # seconds


# ---- files ----


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def parts_of(folder):
    """Every file and directory of a folder, itself last."""
    found = []
    for at, _, names in os.walk(folder, topdown=False):
        found += [os.path.join(at, name) for name in names] + [at]
    return found


def sync_all(folder):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(sync, parts_of(folder)))
    sync(os.path.dirname(folder))


def forget(folder):
    """Take a folder's files out of the cache."""
    for path in parts_of(folder):
        if os.path.isfile(path):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def fetch(folder):
    """Bring a folder's files into the cache: a load may have gone past it."""
    piece = bytearray(1 << 20)
    for path in parts_of(folder):
        if os.path.isfile(path):
            with open(path, "rb", buffering=0) as f:
                while f.readinto(piece):
                    pass


def hash_file(path):
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as data:
        data.madvise(mmap.MADV_SEQUENTIAL)
        return hashlib.sha256(data).hexdigest()


def side_by_side(*calls):
    """Run calls at once, each in a thread; their results."""
    if len(calls) == 1:
        return [calls[0]()]
    with ThreadPoolExecutor(len(calls)) as pool:
        return [done.result() for done in [pool.submit(call) for call in calls]]


class Spare:
    """Memory that the machine has free when a turn begins, and has not given back.

    A virtual machine may hand what is free to its host (Linux: page reporting, by work that runs at most every two seconds). On one, filling the
    cache with 1 GiB took 1.7 s after half a second of rest instead of 0.22, and whoever runs meanwhile is disturbed. So what a turn frees is
    taken at once, by reading a file that is one hole, and let go right before the next turn, when what was freed before is settled.
    """

    SETTLED_SECONDS = 2.3

    def __init__(self, size, folder):
        self.size, self.path, self.is_held, self.freed = size, os.path.join(folder, "spare"), False, time.monotonic()
        self.take()

    def take(self):
        if self.size < SMALL:
            return
        piece = bytearray(8 << 20)
        with open(self.path, "wb+", buffering=0) as f:
            f.truncate(self.size)
            while f.readinto(piece):
                pass
        self.is_held = True

    def give(self):
        """Nothing is dirty, and the memory is free."""
        if not self.is_held:
            return
        os.sync()
        time.sleep(max(0.0, self.freed + self.SETTLED_SECONDS - time.monotonic()))
        os.unlink(self.path)
        self.is_held, self.freed = False, time.monotonic()


@contextlib.contextmanager
def turn(spare):
    spare.give()
    yield
    gc.collect()
    spare.take()


# ---- the state ----


class State:
    """The tensors, as everyone wants them."""

    def __init__(self, size):
        each = max(size // TENSORS // 256, 1) * 64
        self.size = each * 4 * TENSORS
        words = np.frombuffer(bytearray(self.size), "u4")
        for at in range(0, len(words), 1 << 24):
            part = words[at : at + (1 << 24)]
            part[:] = np.frombuffer(np.random.default_rng(at).bytes(part.nbytes), "u4")
        words &= np.uint32(0x3FFFFFFF)  # finite
        flat = words.view("f4")
        self.arrays = {f"layer.{i:03d}.weight": flat[i * each : (i + 1) * each].reshape(-1, 64) for i in range(TENSORS)}
        self.tensors = {name: torch.from_numpy(array) for name, array in self.arrays.items()} if torch else self.arrays

    def cut(self, layout, what=None):
        """The tensors file by file; in `split` the model's are the first."""
        items = list((self.tensors if what is None else what).items())
        if layout == "split":
            return [dict(items[: len(items) // 3]), dict(items[len(items) // 3 :])]
        each = self.tensors_of_a_file() if layout == "cut" else len(items)
        return [dict(items[at : at + each]) for at in range(0, len(items), each)]

    def tensors_of_a_file(self):
        return -(-TENSORS // max(2, self.size // (512 << 20)))

    def described(self, engine, layout):
        where = {name: (array.ctypes.data, array.shape) for name, array in self.arrays.items()}
        model, *rest = self.cut("split" if layout == "split" else "one", where)
        return engine.state(model, rest[0] if rest else {})

    def max_file_bytes(self, layout):
        return self.tensors_of_a_file() * (self.size // TENSORS) + (64 << 10) if layout == "cut" else 0


# ---- one way to save or load: a name, and what to call with a folder that is there ----


class Way:
    def __init__(self, name, layout, call, hashes=False, keep=None):
        self.name, self.layout, self.call, self.hashes, self.keep = name, layout, call, hashes, keep


def file_saver(state, layout, write, hashes, at_once=False):
    """Each file written, then synced, with hashes beside that; one file after the other, or a thread for each."""
    parts = state.cut(layout)

    def save_part(path, part):
        write(part, path)
        if hashes:
            side_by_side(lambda: sync(path), lambda: hash_file(path))
        else:
            sync(path)

    def save(folder):
        paths = [os.path.join(folder, str(i)) for i in range(len(parts))]
        calls = [lambda path=path, part=part: save_part(path, part) for path, part in zip(paths, parts)]
        if at_once:
            side_by_side(*calls)
        else:
            for call in calls:
                call()
        sync(folder)

    return save


def save_ways(state, engine):
    ways = []
    for layout in LAYOUTS:
        described = state.described(engine, layout)

        def by_c(folder, layout=layout, described=described):
            run = engine.open(folder, state.max_file_bytes(layout))
            engine.save(run, described, 1)
            engine.close(run)

        ways.append(Way("Pawl, C", layout, by_c, True))
        if pawl:

            def by_python(folder, layout=layout):
                model, *rest = state.cut("split" if layout == "split" else "one", state.arrays)
                taken = pawl.OptimizerState("adamw", rest[0]) if rest else None
                pawl.save_checkpoint(folder, 1, model, taken, max_file_bytes=state.max_file_bytes(layout) or None)

            ways.append(Way("Pawl, Python", layout, by_python, True))
        for hashes in (False, True):
            name = "safetensors + fsync" + (" + sha256" if hashes else "")
            ways.append(Way(name, layout, file_saver(state, layout, save_file, hashes), hashes))
            if layout != "one":
                ways.append(Way(name + ", threads", layout, file_saver(state, layout, save_file, hashes, True), hashes))
    if torch:
        ways.append(Way("torch.save + fsync", "one", file_saver(state, "one", torch.save, False)))
        ways.append(Way("torch.save + fsync, threads", "split", file_saver(state, "split", torch.save, False, True)))
        for threads in (1, 2):

            def by_dcp(folder, threads=threads):
                dcp.save(state.tensors, storage_writer=dcp.FileSystemWriter(folder, thread_count=threads), no_dist=True)
                sync(folder)

            ways.append(Way(f"dcp.save, {threads} thread{'s' if threads > 1 else ''}", "one", by_dcp))
    if jax:
        saver = orbax.Checkpointer(orbax_handler())
        for name, tree in (("Orbax, jax", {k: jax.device_put(v) for k, v in state.arrays.items()}), ("Orbax, numpy", state.arrays)):

            def by_orbax(folder, tree=tree):
                saver.save(os.path.join(folder, "o"), args=orbax.args.PyTreeSave(tree))
                sync_all(folder)

            ways.append(Way(name, "one", by_orbax))
    return ways


def orbax_handler():
    """Its fastest form here: no compression, a file per array."""
    return orbax.PyTreeCheckpointHandler(use_ocdbt=False, use_compression=False)


# ---- saves in the background: start(folder) returns what waits until durable ----


def background_ways(state, engine):
    ways = []
    for layout in ("split", "cut"):
        described = state.described(engine, layout)
        for name, snapshot in (("Pawl, copy", COPY), ("Pawl, borrow", BORROW)):
            call = PawlBackground(engine, described, snapshot, state.max_file_bytes(layout))
            ways.append(Way(f"{name}, {layout}", layout, call))
    if torch:
        ways += [Way(f"dcp.async_save, {n} thread{'s' if n > 1 else ''}", "one", DcpBackground(state, n)) for n in (1, 2)]
    if jax:
        tree = {k: jax.device_put(v) for k, v in state.arrays.items()}
        ways.append(Way("Orbax async, jax", "one", OrbaxBackground(tree)))
        ways.append(Way("Orbax async, numpy", "one", OrbaxBackground(state.arrays)))
    return ways


class PawlBackground:
    """One run for all saves, as in a training loop: it keeps its memory."""

    def __init__(self, engine, described, snapshot, max_file_bytes):
        self.engine, self.described, self.snapshot, self.max_file_bytes = engine, described, snapshot, max_file_bytes
        self.run, self.step = None, 0

    def start(self, folder):
        if self.run is None:
            self.root = os.path.join(os.path.dirname(folder), f"run-{id(self)}")
            self.run = self.engine.open(self.root, self.max_file_bytes, snapshot=self.snapshot)
            self.engine.prepare(self.run, self.described)
        self.step += 1
        save = self.engine.save_async(self.run, self.described, self.step)
        return lambda: self.engine.wait(save)

    def clean(self, folder):
        self.engine.call("run_wait", self.run)
        for name in os.listdir(self.root):
            if name.startswith("step-"):
                shutil.rmtree(os.path.join(self.root, name))


class DcpBackground:
    """A stager for all saves, so that its memory is kept too."""

    def __init__(self, state, threads):
        self.state, self.threads = state, threads
        self.stager = DefaultStager(StagingOptions(False, False, False, False))

    def start(self, folder):
        writer = dcp.FileSystemWriter(folder, thread_count=self.threads)
        done = dcp.async_save(self.state.tensors, storage_writer=writer, async_stager=self.stager, no_dist=True)

        def wait():
            done.result()
            sync(folder)

        return wait

    def clean(self, folder):
        pass


class OrbaxBackground:
    def __init__(self, tree):
        self.tree, self.saver = tree, orbax.AsyncCheckpointer(orbax_handler())

    def start(self, folder):
        self.saver.save(os.path.join(folder, "o"), args=orbax.args.PyTreeSave(self.tree))

        def wait():
            self.saver.wait_until_finished()
            sync_all(folder)

        return wait

    def clean(self, folder):
        pass


class InFlight:
    """A save that was begun, and a thread that waits for it."""

    def __init__(self, way, folder):
        os.makedirs(folder)
        self.way, self.folder, self.is_done, self.error = way, folder, False, None
        self.begin = time.perf_counter()
        wait = way.call.start(folder)
        self.stall = time.perf_counter() - self.begin
        self.thread = threading.Thread(target=self.run, args=(wait,))
        self.thread.start()

    def run(self, wait):
        try:
            wait()
        except Exception as error:
            self.error = error
        self.durable = time.perf_counter() - self.begin
        self.is_done = True

    def finish(self):
        self.thread.join()
        if self.error is not None:
            raise self.error
        self.way.call.clean(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.stall, self.durable


class Loop:
    """A training loop's stand-in: products and traffic of memory, by all cores, always the same."""

    def __init__(self, size):
        side = 1024 if size >= 1 << 28 else 64
        self.a, self.b, self.c = (np.ones((side, side), "f4") * 0.5 for _ in range(3))
        self.x, self.y = (np.ones(side * side * 16, "f4") for _ in range(2))
        if torch:
            torch.set_num_threads(os.cpu_count())
            self.a, self.b, self.c, self.x, self.y = map(torch.from_numpy, (self.a, self.b, self.c, self.x, self.y))
        self.iterate()

    def iterate(self):
        if torch:
            for _ in range(3):
                torch.mm(self.a, self.b, out=self.c)
            self.x.mul_(0.5).add_(self.y)
        else:
            for _ in range(3):
                np.matmul(self.a, self.b, out=self.c)
            self.x *= 0.5
            self.x += self.y

    def run(self, iterations, start=None):
        """Seconds of each iteration, and the save that was begun in the third."""
        save, seconds = None, []
        while len(seconds) < iterations or (save is not None and not save.is_done):
            begin = time.perf_counter()
            if start is not None and len(seconds) == 2:
                save = start()
            self.iterate()
            seconds.append(time.perf_counter() - begin)
        return seconds, save


def measure_background(args, state, engine, folder, limits):
    ways, loop = chosen(args, background_ways(state, engine)), Loop(state.size)
    found = {way: {key: [] for key in BACKGROUND} for way in ways}
    each = statistics.median(loop.run(15)[0])
    iterations = max(3, int(args.window / each))

    def begin(way):
        return InFlight(way, tempfile.mkdtemp(dir=folder) + "/s")

    for way in ways:
        begin(way).finish()
    spare = Spare(state.size, folder)
    for round in range(args.rounds):
        limits.measure()
        before = statistics.median(loop.run(iterations)[0])
        for way in in_turn(ways, round):
            with turn(spare):
                stall, durable = begin(way).finish()
            with turn(spare):
                seconds, save = loop.run(iterations, lambda way=way: begin(way))
                loop_stall, loop_durable = save.finish()
            os.sync()
            after = statistics.median(loop.run(iterations)[0])
            added = sum(seconds) - len(seconds) * (before + after) / 2
            before = after
            for key, value in zip(BACKGROUND, (stall, durable, loop_stall, loop_durable, added)):
                found[way][key].append(value)
    return {"limits": limits.rounds, "iteration_seconds": each, "iterations": iterations,
            "ways": [{"name": way.name, **found[way]} for way in ways]}


# ---- loads ----


def touch(found):
    """Every page of what was loaded; none may be left in the file only."""
    total = 0
    for value in found.values():
        array = np.asarray(value).reshape(-1).view("u1")
        total += int(array[::PAGE].sum())
    return total


def load_ways(args, state, engine, folder):
    """Each with a folder of its own, written here."""
    ways = []

    kept = {}

    def add(name, layout, save, load, hashes=False, like=None):
        """A way, and what it loads: saved here, once for all that are alike."""
        if not is_chosen(args, name, layout):
            return
        keep = kept.get((like or name, layout))
        if keep is None:
            keep = kept[like or name, layout] = os.path.join(folder, f"{len(ways)}")
            os.makedirs(keep)
            save(keep)
            sync_all(keep)
        ways.append(Way(name, layout, load, hashes, keep))

    for layout in LAYOUTS:
        described = state.described(engine, layout)

        def save(keep, layout=layout, described=described):
            run = engine.open(keep, state.max_file_bytes(layout))
            engine.save(run, described, 1)
            engine.close(run)

        def restore(keep, described=described):
            run = engine.open(keep)
            engine.restore(run, described)
            engine.close(run)

        add("Pawl, restore, C", layout, save, restore, True)
        if pawl:

            def load(keep, **options):
                checkpoint = pawl.load_checkpoint(keep, **options)
                touch(checkpoint.model)
                if checkpoint.optimizer is not None:
                    touch(checkpoint.optimizer.tensors)

            for name, hashes, options in (("load", True, {}), ("load mapped", True, {"copy": False}), ("size-only", False, {"trust": "size-only"})):
                if layout == "cut":
                    continue
                add(f"Pawl, {name}, Python", layout, save, lambda keep, load=load, options=options: load(keep, **options), hashes,
                    "Pawl, restore, C")

        def load_part(path, hashes):
            if hashes:
                hash_file(path)
            touch(load_file(path))

        def load_parts(keep, hashes=False):  # side by side, where there are several
            side_by_side(*[lambda path=path: load_part(path, hashes) for path in parts_of(keep)[:-1]])

        save = file_saver(state, layout, save_file, False)
        add("safetensors", layout, save, load_parts)
        add("safetensors + sha256", layout, save, lambda keep, load=load_parts: load(keep, True), True, "safetensors")
    if torch:
        save = file_saver(state, "one", torch.save, False)
        add("torch.load", "one", save, lambda keep: touch(torch.load(os.path.join(keep, "0"))))
        add("torch.load, mmap", "one", save, lambda keep: touch(torch.load(os.path.join(keep, "0"), mmap=True)), False, "torch.load")
        add("dcp.load", "one", lambda keep: dcp.save(state.tensors, storage_writer=dcp.FileSystemWriter(keep, thread_count=2), no_dist=True),
            lambda keep: dcp.load(state.tensors, storage_reader=dcp.FileSystemReader(keep), no_dist=True))
    if jax:
        saver = orbax.Checkpointer(orbax_handler())
        tree = {k: jax.device_put(v) for k, v in state.arrays.items()}
        again = orbax.checkpoint_utils.construct_restore_args(tree)
        plain = orbax.checkpoint_utils.construct_restore_args(state.arrays)
        for name, arguments in (("Orbax, jax", again), ("Orbax, numpy", plain)):
            add(name, "one", lambda keep: saver.save(os.path.join(keep, "o"), args=orbax.args.PyTreeSave(tree)),
                lambda keep, arguments=arguments: touch(
                    saver.restore(os.path.join(keep, "o"), args=orbax.args.PyTreeRestore(restore_args=arguments))), False, "Orbax, jax")
    return ways


# ---- rounds ----


class Others:
    """How many cores other processes kept busy meanwhile; what the kernel does for its own counts too."""

    def __init__(self):
        self.begin, self.at = self.seconds(), time.perf_counter()

    def seconds(self):
        with open("/proc/stat") as f:
            user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
        mine = os.times()
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - sum(mine[:4])

    def cores(self):
        return (self.seconds() - self.begin) / (time.perf_counter() - self.at)


class Limits:
    """What bench_limits says in each round."""

    def __init__(self, args, state, folder, reads):
        self.program, self.folder, self.size, self.reads = args.limits, folder, max(state.size, 1 << 20), reads
        self.rounds, self.file = [], None

    def measure(self):
        if self.program is None:
            return
        line = [self.program, self.folder, "--bytes", str(self.size)]
        if self.reads and self.file is None:
            self.file = os.path.join(self.folder, "limits")
            with open(self.file, "wb") as f:
                for _ in range(self.size >> 20):
                    f.write(os.urandom(1 << 20))
            sync(self.file)
        line += ["--read", self.file] if self.reads else []
        self.rounds.append(json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout))


def in_turn(ways, round):
    return ways if round % 2 == 0 else ways[::-1]


def is_chosen(args, name, layout):
    return re.search(args.ways, f"{name}, {layout}") is not None


def chosen(args, ways):
    return [way for way in ways if is_chosen(args, way.name, way.layout)]


def timed(call, *args):
    begin = time.perf_counter()
    call(*args)
    return time.perf_counter() - begin


def taken(ways, times):
    return [{"layout": way.layout, "name": way.name, "hashes": way.hashes, "seconds": times[way]} for way in ways]


def measure_saves(args, state, engine, folder, limits):
    ways, spare = chosen(args, save_ways(state, engine)), Spare(state.size, folder)
    times = {way: [] for way in ways}

    def take_turn(way):
        target = tempfile.mkdtemp(dir=folder)
        seconds = timed(way.call, target)
        shutil.rmtree(target)
        return seconds

    for way in chosen(args, save_ways(State(min(state.size, SMALL)), engine)):
        take_turn(way)
    for round in range(args.rounds):
        limits.measure()
        for way in in_turn(ways, round):
            with turn(spare):
                times[way].append(take_turn(way))
    return {"limits": limits.rounds, "ways": taken(ways, times)}


def measure_loads(args, state, engine, folder, limits):
    ways = load_ways(args, state, engine, folder)
    times, spare = {kind: {way: [] for way in ways} for kind in ("cold", "warm")}, Spare(2 * state.size, folder)
    for way in ways:
        forget(way.keep)
    for round in range(args.rounds):
        limits.measure()
        for way in in_turn(ways, round):
            with turn(spare):
                times["cold"][way].append(timed(way.call, way.keep))
                fetch(way.keep)
                times["warm"][way].append(timed(way.call, way.keep))
                forget(way.keep)
    return {"limits": limits.rounds, "cold": taken(ways, times["cold"]), "warm": taken(ways, times["warm"])}


# ---- what the rounds say ----

HASH_LIMITS = {"one": "hash_gb_s", "split": "hash_split_gb_s", "cut": "hash_cut_gb_s"}
RIVALS = {
    "peer": lambda way, rival: True,
    "hashing_peer": lambda way, rival: rival["hashes"],
    "hashing_peer_without_threads": lambda way, rival: rival["hashes"] and not rival["name"].endswith("threads"),
    "hashing_peer_of_the_layout": lambda way, rival: rival["hashes"] and rival["layout"] == way["layout"],
}


def is_ours(way):
    return way["name"].startswith("Pawl")


def best(ways, key="seconds"):
    return min(ways, key=lambda way: statistics.median(way[key]), default=None)


def ratio(above, below):
    return statistics.median(a / b for a, b in zip(above, below))


def sum_up(size, ways, limits, moves):
    """Rows: the medians of each way; of its speed by the limit; of Pawl's, of the time of the fastest peer of each kind by its own."""
    rows = []
    for way in ways:
        row = {**way, "median_seconds": statistics.median(way["seconds"]), "gb_s": statistics.median(size / s / 1e9 for s in way["seconds"])}
        keys = ([moves] if moves else []) + ([HASH_LIMITS[way["layout"]]] if way["hashes"] else [])
        if limits and keys:
            row["to_limit"] = ratio((size / s / 1e9 for s in way["seconds"]), (min(limit[key] for key in keys) for limit in limits))
        for key, fits in RIVALS.items() if is_ours(way) else ():
            rival = best([rival for rival in ways if not is_ours(rival) and fits(way, rival)])
            if rival is not None:
                row[key], row[f"to_{key}"] = f"{rival['name']}, {rival['layout']}", ratio(rival["seconds"], way["seconds"])
        rows.append(row)
    return rows


def sum_up_background(ways):
    rival = best([way for way in ways if way["name"].startswith("dcp")], "added")
    rows = []
    for way in ways:
        row = {"name": way["name"]}
        for key in BACKGROUND:
            row[f"{key}_seconds"] = statistics.median(way[key])
        if rival is not None:
            row["added_to_dcp"] = ratio(way["added"], rival["added"])
        rows.append({**row, **way})
    return rows


def summary(result):
    """The same document with what its rounds say."""
    said, size = {}, result["bytes"]
    if "save" in result:
        said["save"] = sum_up(size, result["save"]["ways"], result["save"]["limits"], "write_gb_s")
    if "async" in result:
        said["async"] = sum_up_background(result["async"]["ways"])
    if "load" in result:
        for kind, moves in (("cold", "read_gb_s"), ("warm", None)):
            said[f"load_{kind}"] = sum_up(size, result["load"][kind], result["load"]["limits"], moves)
    rounds = [limit for key in ("save", "async", "load") for limit in result.get(key, {}).get("limits", ())]
    keys = [key for key in (rounds[0] if rounds else ()) if key != "bytes"]
    said["limits"] = {key: statistics.median([limit[key] for limit in rounds if limit[key] > 0] or [0]) for key in keys}
    return {**result, "summary": said}


def merged(documents):
    """One document of the rounds of several, of the same ways and bytes."""
    whole, *others = documents
    for other in others:
        if other["bytes"] != whole["bytes"]:
            raise SystemExit("bench_save_peers.py: these measured different sizes")
        whole["rounds"] += other["rounds"]
        whole["other_cores"] = max(whole["other_cores"], other["other_cores"])
        for key in ("save", "async", "load"):
            if key not in whole and key in other:
                whole[key] = other[key]
            elif key in other:
                whole[key]["limits"] += other[key]["limits"]
                for part in ("ways", "cold", "warm"):
                    for way, more in zip(whole[key].get(part, ()), other[key].get(part, ()), strict=True):
                        if way["name"] != more["name"]:
                            raise SystemExit("bench_save_peers.py: these measured different ways")
                        for name, values in way.items():
                            if isinstance(values, list):
                                values += more[name]
    return whole


def print_rows(title, rows):
    print(title)
    for row in rows:
        limit = "  %.2f of the limit" % row["to_limit"] if "to_limit" in row else ""
        rivals = "".join("; x %.2f %s" % (row[f"to_{key}"], row[key]) for key in RIVALS if key in row)
        print("  %-6s %-34s %-6s %8.1f ms %6.2f GB/s%s%s" % (row["layout"], row["name"], "hashed" if row["hashes"] else "",
                                                            row["median_seconds"] * 1e3, row["gb_s"], limit, rivals))


def print_text(result):
    said = result["summary"]
    print("%d bytes in %d tensors; others kept %.2f cores busy; %s" % (
        result["bytes"], TENSORS, result["other_cores"], ", ".join(f"{k} {v}" for k, v in result["versions"].items())))
    print("limits: " + ", ".join("%s %.2f" % (key.removesuffix("_gb_s").replace("_", " "), value) for key, value in said["limits"].items()) + " GB/s")
    if "save" in said:
        print_rows("durable saves; x: a peer's time by Pawl's", said["save"])
    if "async" in said:
        print("saves in the background; the loop's iterations take %.1f ms" % (result["async"]["iteration_seconds"] * 1e3))
    for row in said.get("async", ()):
        times = [row[f"{key}_seconds"] * 1e3 for key in BACKGROUND]
        print("  %-26s stall %7.1f ms, durable %7.1f ms; in the loop: stall %7.1f, durable %7.1f, adds %7.1f ms (%.1f to %.1f)%s" % (
            row["name"], *times, min(row["added"]) * 1e3, max(row["added"]) * 1e3,
            ", x %.2f of dcp's" % row["added_to_dcp"] if "added_to_dcp" in row else ""))
    for kind in ("cold", "warm"):
        if "load" in result:
            print_rows(f"loads, {kind}; x: a peer's time by Pawl's", said[f"load_{kind}"])


def versions():
    found = {"python": sys.version.split()[0]}
    for name in ("torch", "safetensors", "orbax-checkpoint", "jax", "numpy", "pawl"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def measure_all(args):
    engine, state, others = Engine(os.path.abspath(args.library)), State(args.bytes), Others()
    result = {"bench": "save_peers", "bytes": state.size, "tensors": TENSORS, "rounds": args.rounds, "cores": os.cpu_count(),
              "versions": versions()}
    with tempfile.TemporaryDirectory(dir=args.dir, prefix="pawl-bench-") as folder:
        for key, measure in (("save", measure_saves), ("async", measure_background), ("load", measure_loads)):
            if args.only in (None, key):
                result[key] = measure(args, state, engine, folder, Limits(args, state, folder, key == "load"))
    result["other_cores"] = others.cores()
    return result


def main():
    parser = argparse.ArgumentParser(description="Pawl beside what people save and load checkpoints with")
    parser.add_argument("--library", help="libpawl.so")
    parser.add_argument("--limits", help="the program bench_limits")
    parser.add_argument("--dir", help="where to write (default: the folder for temporary files)")
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("save", "async", "load"))
    parser.add_argument("--ways", default="", help="only what this regular expression finds in \"NAME, LAYOUT\": '^Pawl|^dcp'")
    parser.add_argument("--window", type=float, default=1.5, help="seconds of the loop that a save in the background is put into")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--merge", nargs="+", metavar="JSON", help="measure nothing: sum up what several runs wrote with --json")
    args = parser.parse_args()
    if args.merge is None and args.library is None:
        parser.error("--library or --merge is needed")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was written is removed
    if args.merge:
        documents = []
        for path in args.merge:
            with open(path) as f:
                documents.append(json.load(f))
        result = summary(merged(documents))
    else:
        result = summary(measure_all(args))
    if args.json:
        print(json.dumps(result))
    else:
        print_text(result)


if __name__ == "__main__":
    sys.exit(main())
