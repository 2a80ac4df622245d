"""Shared by all tests: a folder of its own for each, the golden files, a seed that is printed."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also the long tests")


def pytest_configure() -> None:
    # Begun in the background by a shell, a program ignores SIGINT, and Python then raises no KeyboardInterrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Every test runs in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def golden() -> pathlib.Path:
    return TOP / "tests" / "golden"


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--long"))


@pytest.fixture
def seeded() -> random.Random:
    """PAWL_TEST_SEED repeats a run; the seed is shown when the test fails."""
    seed = int(os.environ.get("PAWL_TEST_SEED") or random.SystemRandom().getrandbits(32))
    print("seed", seed)
    return random.Random(seed)


@pytest.fixture
def python(folder: pathlib.Path):
    """Run a script in an interpreter of its own; the completed process."""

    def run(code: str, *args: str, check: bool = True, timeout: float = 60, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", code, *args],
            cwd=folder,
            env={**os.environ, **env},
            text=True,
            capture_output=True,
            timeout=timeout,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    return run


@pytest.fixture
def entries():
    """Every name under a folder, with the bytes of its files: what must not have changed."""

    def look(root: os.PathLike[str] | str) -> list[str]:
        top = pathlib.Path(root)
        return sorted(f"{path.relative_to(top)} {path.read_bytes() if path.is_file() else ''}" for path in top.rglob("*"))

    return look
