"""The package itself: what importing costs, the program that comes with it, every public name, every example."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

import pawl
import pawl.llmcp35
import pawl.numpy
import pawl.testing
import pawl.tokens

MODULES = ["pawl", "pawl.llmcp35", "pawl.numpy", "pawl.tokens", "pawl.testing"]
if importlib.util.find_spec("torch"):
    MODULES.append("pawl.torch")
if importlib.util.find_spec("jax"):
    MODULES += ["pawl.jax", "pawl.flax"]


def test_import_loads_little(python):
    """Goal: `import pawl` brings NumPy at most: no torch, no jax, no ml_dtypes, no json, no dataclasses."""
    done = python("import sys, pawl; print(*sorted(sys.modules))")
    loaded = set(done.stdout.split())
    assert not loaded & {"torch", "jax", "ml_dtypes", "json", "dataclasses", "pawl._checkpoint", "pawl._files", "numpy"}
    python("import pawl.numpy, sys; assert 'ml_dtypes' not in sys.modules and 'torch' not in sys.modules")


def test_versions():
    assert pawl.__version__ == pawl.libpawl_version()


def test_every_name_is_there():
    for name in pawl.__all__:
        assert getattr(pawl, name) is not None and name in dir(pawl)
    with pytest.raises(AttributeError):
        pawl.nothing
    for module in MODULES:
        found = importlib.import_module(module)
        for name in found.__all__:
            thing = getattr(found, name)
            assert inspect.getdoc(thing), f"{module}.{name} has no docstring"
            if inspect.isclass(thing):
                for key, value in vars(thing).items():
                    if not key.startswith("_") and inspect.isfunction(value):
                        assert inspect.getdoc(value), f"{module}.{name}.{key} has no docstring"


def package_modules():
    folder = pathlib.Path(pawl.__file__).parent
    for path in sorted(folder.glob("*.py")):
        name = "pawl" if path.stem == "__init__" else f"pawl.{path.stem}"
        framework = {"torch": "torch", "jax": "jax", "flax": "jax"}.get(path.stem)
        if path.stem != "__main__" and (framework is None or importlib.util.find_spec(framework)):
            yield name


@pytest.mark.parametrize("name", list(package_modules()))
def test_examples_of_docstrings(name):
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, raise_on_error=False)
    assert not failed
    if name in MODULES and name != "pawl.flax":
        assert tried


def test_examples_of_the_page(folder, python, request):
    """The python blocks of docs/python.md are one program; run twice, the first block resumes."""
    page = (pathlib.Path(request.config.rootpath) / "docs" / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    assert len(blocks) >= 4
    python("\n".join(blocks))
    done = python(blocks[0] + "\nprint(checkpoint.step)")
    assert done.stdout == "at step 100\n100\n"


def test_the_program_comes_with_it(folder):
    pawl.save_checkpoint("r", 1, {})
    run = [sys.executable, "-m", "pawl"]
    done = subprocess.run([*run, "verify", "r", "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["ok"] is True
    done = subprocess.run([*run, "verify", "nowhere"], capture_output=True, text=True)
    assert done.returncode == 1 and "not-found" in done.stdout + done.stderr
    done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "pawl"), "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and pawl.__version__ in done.stdout


def test_it_is_typed():
    folder = pathlib.Path(pawl.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_pawl.pyi").exists()


def test_descriptors_are_not_inherited_and_not_standard(python):
    """Goal: none of ours is 0, 1 or 2, even where those are closed, and all are close-on-exec."""
    python(
        """
import fcntl, os, numpy, pawl, pawl.numpy
for fd in (0, 1, 2):
    os.close(fd)
run = pawl.Run("r")
run.save(1, {"w": numpy.zeros(3)})
mapped = run.load(copy=False)
reader = pawl.safe_open("r/step-000001/model.safetensors")
for fd in (0, 1, 2):
    try:
        os.fstat(fd)
    except OSError:
        continue
    os._exit(3)
for name in os.listdir("/proc/self/fd"):
    try:
        flags = fcntl.fcntl(int(name), fcntl.F_GETFD)
    except OSError:
        continue
    if not flags & fcntl.FD_CLOEXEC:
        os._exit(4)
os._exit(0)
"""
    )


def test_the_program_hears_of_signals_that_python_ignores(python):
    """Goal: `python -m pawl ls … | head` ends as `pawl ls … | head` does. Method: a program that shows its mask stands in for ours."""
    done = python(
        """
import signal, sys
import pawl.__main__ as m
assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
m.program = lambda: "/bin/cat"
sys.argv = ["pawl", "/proc/self/status"]
m.main()
"""
    )
    ignored = int(re.search(r"^SigIgn:\s*([0-9a-f]+)$", done.stdout, re.M)[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))
