"""Just enough of libpawl for the comparisons with other libraries: the structs of include/pawl/*.h, by hand."""
import ctypes as c


class Str(c.Structure):
    _fields_ = [("data", c.c_void_p), ("len", c.c_size_t)]

    def bytes(self):
        return c.string_at(self.data, self.len) if self.len else b""


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("system_errno", c.c_int), ("offset", c.c_uint64), ("code", c.c_char * 64),
                ("message", c.c_char * 1024), ("path", c.c_char * 512), ("tensor", c.c_char * 256), ("hint", c.c_char * 512)]


class ModelOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("mode", c.c_int), ("profile", c.c_int), ("header_bytes_max", c.c_uint64),
                ("later", c.c_uint8 * 64)]


class Info(c.Structure):
    _fields_ = [("name", Str), ("shape", c.POINTER(c.c_uint64)), ("begin", c.c_uint64), ("end", c.c_uint64),
                ("rank", c.c_uint32), ("file", c.c_uint32), ("dtype", c.c_int)]


class Pair(c.Structure):
    _fields_ = [("key", Str), ("value", Str)]


class Tensor(c.Structure):
    _fields_ = [("size", c.c_size_t), ("slot", c.c_int), ("dtype", c.c_int), ("name", Str), ("rank", c.c_size_t),
                ("shape", c.c_void_p), ("strides", c.c_void_p), ("data", c.c_void_p), ("source", c.c_void_p),
                ("is_big_endian", c.c_uint8), ("stored", c.c_int), ("overflow", c.c_int)]


class WriteOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("align", c.c_uint64), ("metadata", c.POINTER(Pair)), ("n_metadata", c.c_size_t),
                ("has_metadata", c.c_uint8), ("keep_existing", c.c_uint8),
                ("later", c.c_uint8 * 64)]  # zeros: what a newer version has there is left at its default


STRICT, COMPAT, LINT = 0, 1, 2
DTYPES = ("BOOL F4 F6_E2M3 F6_E3M2 U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ I16 U16 F16 BF16 I32 U32 F32 C64 "
          "F64 I64 U64").split()
BITS = dict(zip(DTYPES, [8, 4, 6, 6, 8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 32, 32, 32, 64, 64, 64, 64]))


def make_str(data):
    """A Str of bytes, which the caller keeps alive."""
    return Str(c.cast(c.c_char_p(data), c.c_void_p), len(data))


class Library:
    def __init__(self, path):
        self.lib = lib = c.CDLL(path)
        lib.pawl_model_open_memory.argtypes = [c.c_char_p, c.c_size_t, c.POINTER(ModelOptions), c.POINTER(c.c_void_p),
                                               c.POINTER(Error)]
        lib.pawl_model_open_z.argtypes = [c.c_char_p, c.POINTER(ModelOptions), c.POINTER(c.c_void_p), c.POINTER(Error)]
        lib.pawl_model_close.argtypes = [c.c_void_p]
        lib.pawl_model_close.restype = None
        lib.pawl_model_tensors.argtypes = [c.c_void_p, c.POINTER(c.c_size_t)]
        lib.pawl_model_tensors.restype = c.POINTER(Info)
        lib.pawl_model_find.argtypes = [c.c_void_p, Str]
        lib.pawl_model_find.restype = c.POINTER(Info)
        lib.pawl_model_metadata.argtypes = [c.c_void_p, c.POINTER(c.c_size_t), c.POINTER(c.c_bool)]
        lib.pawl_model_metadata.restype = c.POINTER(Pair)
        lib.pawl_safetensors_write_memory.argtypes = [c.c_void_p, c.c_size_t, c.POINTER(Tensor), c.c_size_t,
                                                      c.POINTER(WriteOptions), c.POINTER(c.c_uint64), c.POINTER(Error)]
        self.options = {mode: ModelOptions(c.sizeof(ModelOptions), mode, 0, 0) for mode in (STRICT, COMPAT, LINT)}
        self.error = Error()

    def judge(self, data, mode=COMPAT):
        """(None, tensors by name, metadata) of a file in memory, or (its error's code, message, None)."""
        model = c.c_void_p()
        status = self.lib.pawl_model_open_memory(data, len(data), self.options[mode], c.byref(model), self.error)
        if status != 0:
            return self.error.code.decode(), self.error.message.decode(errors="replace"), None
        n = c.c_size_t()
        tensors = {}
        infos = self.lib.pawl_model_tensors(model, c.byref(n))
        for i in range(n.value):
            t = infos[i]
            tensors[t.name.bytes()] = (DTYPES[t.dtype - 1], [t.shape[k] for k in range(t.rank)], t.begin, t.end)
        is_present = c.c_bool()
        pairs = self.lib.pawl_model_metadata(model, c.byref(n), c.byref(is_present))
        metadata = {pairs[i].key.bytes(): pairs[i].value.bytes() for i in range(n.value)} if is_present.value else None
        self.lib.pawl_model_close(model)
        return None, tensors, metadata

    def save(self, tensors, metadata=None):
        """The file of {name: (dtype, shape, bytes)}; a code for what is refused."""
        array = (Tensor * len(tensors))()
        keep = []
        for at, (name, (dtype, shape, data)) in zip(array, tensors.items()):
            dims = (c.c_uint64 * len(shape))(*shape)
            # each memory is its own: equal addresses would be tied tensors
            memory = c.create_string_buffer(data, max(len(data), 1))
            keep += [name, dims, memory]
            at.size, at.dtype, at.name, at.rank = c.sizeof(Tensor), DTYPES.index(dtype) + 1, make_str(name), len(shape)
            at.shape, at.data = c.addressof(dims), c.addressof(memory)
        pairs = (Pair * len(metadata or ()))()
        for pair, (key, value) in zip(pairs, (metadata or {}).items()):
            pair.key, pair.value = make_str(key), make_str(value)
        options = WriteOptions(c.sizeof(WriteOptions), 0, pairs, len(pairs), metadata is not None, 0)
        size = c.c_uint64()
        if self.lib.pawl_safetensors_write_memory(None, 0, array, len(array), options, c.byref(size), self.error) != 0:
            return self.error.code.decode()
        out = c.create_string_buffer(size.value)
        status = self.lib.pawl_safetensors_write_memory(out, size.value, array, len(array), options, None, self.error)
        return out.raw if status == 0 else self.error.code.decode()
