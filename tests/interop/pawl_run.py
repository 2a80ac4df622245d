"""Saves and restores of libpawl by ctypes, of tensors that lie in memory of NumPy's or PyTorch's: what a measurement needs of a run."""
import ctypes as c

from pawl_ctypes import DTYPES, Error, Tensor, make_str

MODEL, OPTIMIZER = 1, 2
COPY, BORROW = 0, 1


class RunOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("keep", c.c_int64), ("keep_every", c.c_int64), ("keep_best", c.c_void_p),
                ("n_keep_best", c.c_size_t), ("profile", c.c_int), ("max_file_bytes", c.c_uint64), ("busy", c.c_int),
                ("write_created_at", c.c_uint8), ("verify_first", c.c_uint8), ("failpoint", c.c_void_p), ("warning", c.c_void_p),
                ("progress", c.c_void_p), ("context", c.c_void_p), ("snapshot", c.c_int), ("in_flight", c.c_int), ("at_exit", c.c_int),
                ("saved", c.c_void_p), ("write_sums", c.c_uint8)]


class Engine:
    """libpawl, with a failure as an exception."""

    def __init__(self, path):
        self.lib = c.CDLL(path)
        for name in ("state_free", "save_release"):
            getattr(self.lib, f"pawl_{name}").restype = None
            getattr(self.lib, f"pawl_{name}").argtypes = [c.c_void_p]

    def call(self, name, *args):
        error = Error()
        if getattr(self.lib, f"pawl_{name}")(*args, c.byref(error)) != 0:
            raise RuntimeError(f"{name}: {error.message.decode(errors='replace')}")

    def state(self, model, optimizer):
        """A state of two {name: (address, shape)} of F32."""
        state = c.c_void_p()
        self.call("state_new", c.byref(state))
        if optimizer:
            self.call("state_optimizer", state, b"adamw")
        for slot, tensors in ((MODEL, model), (OPTIMIZER, optimizer)):
            for name, (address, shape) in tensors.items():
                dims, text = (c.c_uint64 * len(shape))(*shape), name.encode()
                tensor = Tensor(c.sizeof(Tensor), slot, DTYPES.index("F32") + 1, make_str(text), len(shape), c.addressof(dims), None, address)
                self.call("state_tensor", state, c.byref(tensor))
        return state

    def open(self, root, max_file_bytes=0, snapshot=COPY):
        run = c.c_void_p()
        options = RunOptions(size=c.sizeof(RunOptions), max_file_bytes=max_file_bytes, snapshot=snapshot)
        self.call("run_open_z", root.encode(), c.byref(options), c.byref(run))
        return run

    def close(self, run):
        self.call("run_close", run)

    def save(self, run, state, step):
        self.call("run_save", run, state, c.c_int64(step), None)

    def prepare(self, run, state):
        self.call("run_prepare", run, state)

    def save_async(self, run, state, step):
        save = c.c_void_p()
        self.call("run_save_async", run, state, c.c_int64(step), None, c.byref(save))
        return save

    def wait(self, save):
        self.call("save_wait", save, c.c_int64(-1))

    def release(self, save):
        self.lib.pawl_save_release(save)

    def restore(self, run, state):
        step = c.c_int64()
        self.call("run_restore", run, state, c.byref(step), None)
        return step.value
