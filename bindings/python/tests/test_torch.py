"""PyTorch: files, modules, optimizers, generators, and a run that is killed and resumed bit for bit. Runs where torch is."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

import pawl
import pawl.testing

torch = pytest.importorskip("torch")
import pawl.torch as pt  # noqa: E402


def net(seed: int = 0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.Dropout(0.3), torch.nn.Linear(5, 6, bias=False))
    return model


def train(model, optimizer, n=3):
    model.train()
    for _ in range(n):
        optimizer.zero_grad()
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()


def same_state(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.cpu(), b.cpu())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_state(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same_state, a, b))
    return a == b


def test_dtypes_views_and_ties(folder):
    tensors = {"base": torch.arange(12.0).reshape(3, 4), "scalar": torch.tensor(3), "none": torch.empty(0, 2), "bool": torch.tensor([True, False])}
    tensors["turned"] = tensors["base"].clone().T
    tensors["tied"] = tensors["base"]
    for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float64", "int8", "uint8", "int16", "int64", "uint16", "uint32", "complex64"):
        if hasattr(torch, name):
            tensors[name] = torch.tensor([1, 2, 3]).to(getattr(torch, name))
    tensors["conj"] = torch.tensor([1 + 2j], dtype=torch.complex64).conj()
    data = pt.save(tensors, {"a": "b"})
    pt.save_file(tensors, "f", {"a": "b"})
    assert (folder / "f").read_bytes() == data
    for back in (pt.load(data), pt.load_file("f"), pt.load_file("f", copy=False)):
        assert set(back) == set(tensors) and back["tied"] is back["base"]
        for name, tensor in tensors.items():
            assert back[name].dtype == tensor.dtype and back[name].shape == tensor.shape
            assert torch.equal(back[name].view(torch.uint8) if "float8" in name else back[name], tensor.view(torch.uint8) if "float8" in name else tensor.resolve_conj())
    with pawl.safe_open("f", framework="pt") as f:
        assert torch.equal(f.get_tensor("base"), tensors["base"]) and torch.equal(f.get_slice("base")[1:, ::2], tensors["base"][1:, ::2])
        assert f.get_tensor("bfloat16").dtype == torch.bfloat16
    assert pt.load_file("f", names=["bool"]).keys() == {"bool"}


def test_what_is_refused_is_named():
    for bad, text in (
        (torch.empty(2, device="meta"), "meta"),
        (torch.eye(2).to_sparse(), "sparse"),
        (torch.zeros(1, dtype=torch.complex128), "complex128"),
    ):
        with pytest.raises(pawl.ArgumentError, match="'w'") as info:
            pt.save({"w": bad})
        assert text in str(info.value)
    with pytest.raises(TypeError):
        pt.save({"w": np.zeros(1)})
    with pytest.raises(pawl.ArgumentError, match="cast it first"):
        pt.save({"w": torch.zeros(2, dtype=torch.bfloat16)}, dtypes={"w": "F32"})
    assert pt.load(pt.save({"w": torch.ones(2)}, dtypes={"w": "BF16"}))["w"].dtype == torch.bfloat16


def test_overlaps_are_said():
    base = torch.arange(10.0)
    with pytest.warns(pawl.Warning, match="'all' and 'part'"):
        data = pt.save({"all": base, "part": base[2:5]})
    assert pt.load(data)["part"].tolist() == [2, 3, 4]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt.save({"a": base[:5], "b": base[5:]})


def test_models(folder):
    model = net()
    model[3].weight = torch.nn.Parameter(torch.randn(6, 5))
    model.register_module("tied", torch.nn.Linear(5, 6, bias=False))
    model.tied.weight = model[3].weight
    pt.save_model(model, "m")
    other = net(1)
    other.register_module("tied", torch.nn.Linear(5, 6, bias=False))
    other.tied.weight = other[3].weight
    assert pt.load_model(other, "m") == ([], [])
    assert same_state(dict(model.state_dict()), dict(other.state_dict())) and other.tied.weight is other[3].weight
    with pytest.raises(pawl.MismatchError) as info:
        pt.load_model(torch.nn.Linear(2, 2), "m")
    assert "weight" in info.value.missing and info.value.unexpected
    with pytest.raises(pawl.MismatchError):
        pt.load_model(torch.nn.Linear(2, 2), "m", strict=True)
    reference = pytest.importorskip("safetensors.torch")
    reference.save_model(model, "theirs")
    third = net(2)
    third.register_module("tied", torch.nn.Linear(5, 6, bias=False))
    third.tied.weight = third[3].weight
    assert pt.load_model(third, "theirs") == ([], [])
    plain = {k: v for k, v in net().state_dict().items()}
    assert pt.save(plain, {"k": "v"}) == reference.save(plain, {"k": "v"})


OPTIMIZERS = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9),
    "plain": lambda ps: torch.optim.SGD(ps, lr=0.1),
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=1e-3, amsgrad=True),
    "tensor-lr": lambda ps: torch.optim.Adam(ps, lr=torch.tensor(1e-3)),
    "adagrad": lambda ps: torch.optim.Adagrad(ps),
    "rmsprop": lambda ps: torch.optim.RMSprop(ps, momentum=0.1, centered=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_come_back(name):
    """Goal: state, group options and the next steps are those of the run that did not stop; objects stay."""
    make = OPTIMIZERS[name]
    one, two = net(), net(5)
    opt_one, opt_two = make(one.parameters()), make(two.parameters())
    train(one, opt_one)
    train(two, opt_two, 1)
    pt.save_checkpoint("r", 1, model=one, optimizer=opt_one)
    weights = [p.data_ptr() for p in two.parameters()]
    checkpoint = pt.load_checkpoint("r", model=two, optimizer=opt_two)
    assert checkpoint.optimizer.name == type(opt_one).__name__.lower() and [p.data_ptr() for p in two.parameters()] == weights
    assert same_state(opt_one.state_dict(), opt_two.state_dict()) and same_state(dict(one.state_dict()), dict(two.state_dict()))
    torch.manual_seed(9)
    train(one, opt_one)
    torch.manual_seed(9)
    train(two, opt_two)
    assert same_state(dict(one.state_dict()), dict(two.state_dict()))


def test_parameters_are_found_by_name_in_any_order():
    one, two = net(), net(3)
    for model in (one, two):
        model[0].bias.requires_grad_(False)
    groups = lambda m: [{"params": [m[3].weight], "lr": 0.5}, {"params": [m[0].weight, m[1].weight, m[1].bias]}]  # noqa: E731
    opt_one = torch.optim.AdamW(groups(one), lr=0.1)
    train(one, opt_one)
    other = groups(two)
    opt_two = torch.optim.AdamW([{"params": other[1]["params"][::-1]}, other[0]], lr=0.2)
    pt.save_checkpoint("r", 1, model=one, optimizer=opt_one)
    pt.load_checkpoint("r", model=two, optimizer=opt_two)
    assert opt_two.param_groups[1]["lr"] == 0.5 and opt_two.param_groups[0]["lr"] == 0.1
    for a, b in ((one[3].weight, two[3].weight), (one[0].weight, two[0].weight), (one[1].bias, two[1].bias)):
        assert same_state(dict(opt_one.state[a]), dict(opt_two.state[b]))
    assert not two[0].bias.requires_grad
    with pytest.raises(pawl.ArgumentError, match="not the model's"):
        pt.save_checkpoint("r", 2, model=one, optimizer=torch.optim.SGD(two.parameters()))
    before = {k: v.clone() for k, v in two.state_dict().items()}
    with pytest.raises(pawl.MismatchError):
        pt.load_checkpoint("r", model=two, optimizer=torch.optim.SGD(two.parameters()))
    with pytest.raises(pawl.MismatchError):
        pt.load_checkpoint("r", model=two, optimizer=torch.optim.AdamW(two[0].parameters()))
    assert same_state(dict(two.state_dict()), before)


def test_states_of_other_dtypes_are_not_cast():
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    for p in model.parameters():
        optimizer.state[p] = {"step": torch.tensor(3.0), "exp_avg": torch.ones_like(p, dtype=torch.bfloat16), "q": torch.ones(4, dtype=torch.uint8)}
    pt.save_checkpoint("r", 1, model=model, optimizer=optimizer)
    other = torch.nn.Linear(3, 3)
    opt = torch.optim.AdamW(other.parameters())
    pt.load_checkpoint("r", model=other, optimizer=opt)
    state = opt.state[other.weight]
    assert state["exp_avg"].dtype == torch.bfloat16 and state["q"].dtype == torch.uint8 and state["step"].dtype == torch.float32


def test_several_optimizers_schedulers_and_extras():
    def parts(seed):
        model = net(seed)
        optimizers = {"a": torch.optim.SGD(model[0].parameters(), lr=0.1, momentum=0.9), "b": torch.optim.AdamW(model[3].parameters())}
        scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizers["a"], [2, 3])
        return model, optimizers, scheduler

    model, optimizers, scheduler = parts(0)
    for one in optimizers.values():
        train(model, one)
    scheduler.step()
    kept = {"n": 7}
    extra = {"ema": net(4), "counter": (lambda: kept["n"], lambda v: kept.update(n=v))}
    pt.save_checkpoint("r", 1, model=model, optimizer=optimizers, scheduler=scheduler, extra=extra, attachments={"note": b"x"})
    kept["n"] = 0
    other, opts, sched = parts(1)
    ema = net(6)
    checkpoint = pt.load_checkpoint(
        "r", model=other, optimizer=opts, scheduler=sched, extra={"ema": ema, "counter": (lambda: 0, lambda v: kept.update(n=v))}
    )
    assert kept["n"] == 7 and same_state(dict(ema.state_dict()), dict(extra["ema"].state_dict())) and checkpoint.attachments["note"] == b"x"
    for key in optimizers:
        assert same_state(optimizers[key].state_dict(), opts[key].state_dict())
    assert sched.state_dict() == scheduler.state_dict()
    with pytest.raises(pawl.MismatchError, match="scaler"):
        pt.load_checkpoint("r", scaler=torch.amp.GradScaler("cpu"))
    lam = torch.optim.lr_scheduler.LambdaLR(optimizers["a"], lambda e: 1.0)
    class Lam:
        def state_dict(self):
            return {"lr_lambdas": [lam.lr_lambdas[0]]}
    with pytest.raises(pawl.ArgumentError, match=r"scheduler\['lr_lambdas'\]\[0\]: function"):
        pt.save_checkpoint("r", 2, model=model, scheduler=Lam())


def test_generators_are_kept_and_saving_draws_nothing():
    model = net()
    torch.manual_seed(3), np.random.seed(4), random.seed(5)
    np.random.standard_normal(), random.gauss(0, 1)

    def draw():
        return [*torch.rand(3).tolist(), np.random.standard_normal(), np.random.rand(), random.gauss(0, 1), random.random()]

    before = torch.get_rng_state()
    pt.save_checkpoint("r", 1, model=model)
    assert torch.equal(before, torch.get_rng_state())
    want = draw()
    pt.load_checkpoint("r", model=net(2))
    assert draw() == want
    state = torch.get_rng_state()
    pt.load_checkpoint("r", model=model, rng=False)
    assert torch.equal(state, torch.get_rng_state())


def test_restores_are_all_or_nothing():
    model = net()
    pt.save_checkpoint("r", 1, model=model)
    other = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Linear(5, 6), torch.nn.Linear(6, 6))
    before = {k: v.clone() for k, v in other.state_dict().items()}
    with pytest.raises(pawl.MismatchError) as info:
        pt.load_checkpoint("r", model=other)
    assert info.value.missing and info.value.unexpected and info.value.mismatched
    with pytest.raises(pawl.MismatchError):
        pt.load_checkpoint("r", model=net(), optimizer=torch.optim.SGD(model.parameters()))
    assert same_state(dict(other.state_dict()), before)
    half = net().half()
    with pytest.raises(pawl.MismatchError, match="float16"):
        pt.load_checkpoint("r", model=half)
    with pytest.raises(pawl.ArgumentError):
        pt.load_checkpoint("r", optimizer=torch.optim.SGD(model.parameters()))
    assert isinstance(pt.load_checkpoint("r").model["0.weight"], torch.Tensor)
    compiled = torch.compile(net(8))
    pt.load_checkpoint("r", model=compiled)
    pt.save_checkpoint("c", 1, model=compiled)
    assert set(pawl.load_checkpoint("c").model) == set(model.state_dict())


def test_a_run_that_stopped_is_one_that_did_not():
    """Goal: dropout, batch norm, momentum and a scheduler, stopped after each of 6 steps and resumed in new objects, end with the same bits."""

    def whole(root, stops):
        done = 0
        torch.manual_seed(1)
        while done < 6:
            model = net(done + 3)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
            torch.manual_seed(2)
            with pt.Run(root, model=model, optimizer=optimizer, scheduler=scheduler, keep=2) as run:
                done = run.restore()
                assert (run.restored is None) == (done == 0)
                if done == 0:
                    with torch.no_grad():
                        for p in model.parameters():
                            p.fill_(0.1)
                while done < 6:
                    train(model, optimizer, 1)
                    scheduler.step()
                    done += 1
                    run.save(done, metrics={"step": done})
                    if stops:
                        break
        return dict(model.state_dict())

    assert same_state(whole("a", False), whole("b", True))


@pytest.mark.parametrize("snapshot", ["copy", "borrow"])
def test_saves_in_the_background_hold_the_step_they_were_asked_for(entries, snapshot):
    """Goal: training goes on while a step is written, and the step is what a save in the foreground would have written, bit for bit."""

    def run(root, save):
        random.seed(1)
        np.random.seed(1)
        model = net(1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        with pt.Run(root, model=model, optimizer=optimizer, scheduler=scheduler, snapshot=snapshot) as run:
            for step in range(1, 7):
                train(model, optimizer, 1)
                scheduler.step()
                save(run, step, model, optimizer)
            run.wait()
            assert run.restore() == 6

    def foreground(run, step, model, optimizer):
        run.save(step, metrics={"loss": 1.0})

    def background(run, step, model, optimizer):
        save = run.save_async(step, metrics={"loss": 1.0})
        assert save.step == step and save.released()

    run("a", foreground)
    run("b", background)
    assert entries("a") == entries("b")


def test_a_rank_that_writes_nothing_has_nothing_to_wait_for(monkeypatch):
    heard = []
    monkeypatch.setattr(pt, "_is_writer", lambda: False)
    with pt.Run("r", model=net(), on_durable=lambda *_: heard.append(1)) as run:
        save = run.save_async(3)
        save.add_done_callback(lambda save: heard.append(save.path))
        assert save.wait() == run.root / "step-000003" and save.done() and save.released() and save.stage() == "durable"
        assert save.progress() == (0, 0) and not save.cancel() and save.exception() is None
        assert run.save(4) == run.root / "step-000004"
        assert heard == [save.path] and not run.root.exists()


def test_only_the_rank_that_writes_takes_the_lock(monkeypatch):
    """Goal: every rank opens the same run beside the others. Method: in one process, by what it takes for its rank."""
    model = net()
    with pt.Run("r", model=model) as writer:
        writer.save(1)
        monkeypatch.setattr(pt, "_is_writer", lambda: False)
        with pt.Run("r", model=net(1)) as other:
            assert other.restore() == 1 and other.steps() == [1]
            assert same_state(dict(other._model.state_dict()), dict(model.state_dict()))
            for call in (lambda: other.prune(1), other.repair, lambda: other.pin(1), lambda: other.unpin(1)):
                with pytest.raises(RuntimeError, match="only rank 0 saves, prunes, repairs and pins"):
                    call()
            other.save(2)
            other.wait()
            # The rank is another one than the run was opened by: neither writes without the lock, nor leaves it to nobody.
            for run in (writer, other):
                monkeypatch.setattr(pt, "_is_writer", lambda run=run: run is other)
                for save in (run.save, run.save_async):
                    with pytest.raises(RuntimeError, match="open it after init_process_group"):
                        save(3)
        with pytest.raises(RuntimeError, match="the run is closed"):
            other.save(4)
        other.close()
        assert writer.steps() == [1]


RANK = """
import sys, torch, torch.distributed as dist
import pawl, pawl.torch as pt
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 3))
sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
with pt.Run("r", model=model, optimizer=sgd, rng=False, keep=2) as run:
    assert run.restore() == 0
    dist.barrier()
    for step in range(1, 5):
        sgd.zero_grad()
        model(torch.full((2, 4), float(step + rank))).sum().backward()
        sgd.step()
        run.save(step) if step % 2 else run.save_async(step)
    run.wait()
    dist.barrier()
    assert run.restore() == 4 and run.steps() == [3, 4]
    if rank == 0:
        run.pin(4)
    else:
        try:
            run.pin(4)
            raise SystemExit("rank 1 has pinned")
        except RuntimeError as error:
            assert "only rank 0" in str(error)
    dist.barrier()
total = sum(p.double().sum() for p in model.parameters()).item()
saved = sum(torch.as_tensor(t).double().sum() for t in pawl.load_checkpoint("r").model.values()).item()
assert abs(total - saved) < 1e-9, (total, saved)
dist.destroy_process_group()
"""


def test_two_ranks_run_the_same_loop(folder):
    """Goal: a real group of two processes opens, restores and saves one run side by side; one of them writes."""
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this PyTorch has no gloo")
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(rank), str(folder / "meet")], cwd=folder, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        said = [rank.communicate(timeout=100)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)


def test_a_handler_is_put_back_although_closing_raises():
    before = signal.getsignal(signal.SIGUSR1)
    with pytest.raises(OSError, match="failpoint"), pt.Run("r", model=net()) as run:
        run.stop_on(signal.SIGUSR1)
        with pawl.testing.failpoints("save/before-rename=error"):
            run.save_async(1)
    assert signal.getsignal(signal.SIGUSR1) is before


def test_stop_on_sets_stopping_and_puts_the_handler_back():
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        mine = signal.getsignal(signal.SIGUSR1)
        with pt.Run("r", model=net()) as run:
            run.stop_on(signal.SIGUSR1)
            assert not run.stopping
            signal.raise_signal(signal.SIGUSR1)
            assert run.stopping and seen == [1]
        assert signal.getsignal(signal.SIGUSR1) is mine
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda():
    model = net().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(8, 6, device="cuda")).sum().backward()
        optimizer.step()
    pt.save_checkpoint("r", 1, model=model, optimizer=optimizer)
    want = torch.rand(3, device="cuda")
    other = net(3).cuda()
    opt = torch.optim.AdamW(other.parameters(), fused=True)
    pt.load_checkpoint("r", model=other, optimizer=opt)
    assert torch.equal(torch.rand(3, device="cuda"), want)
    assert same_state(dict(model.state_dict()), dict(other.state_dict())) and same_state(optimizer.state_dict(), opt.state_dict())
    w = torch.randn(1000, 100, device="cuda", dtype=torch.bfloat16)
    pt.save_file({"w": w, "tied": w, "e": torch.empty(0, device="cuda")}, "f")
    back = pt.load_file("f", device="cuda:0")
    assert torch.equal(back["w"], w) and back["tied"] is back["w"] and back["w"].device.type == "cuda"
    assert pawl.safe_open("f", "pt", "cuda:0").get_tensor("w").device.type == "cuda"
