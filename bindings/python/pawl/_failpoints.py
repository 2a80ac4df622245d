"""Failpoints that are in force: spec by name. Set by pawl.testing.failpoints, asked by every save."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable

NAMES = ("save/after-file", "save/before-manifest", "save/before-rename", "save/before-latest", "save/before-prune")
_ENTRY = re.compile(r"([a-z/-]+)=(?:(\d+)\*)?(crash|error|off|sleep\((\d+)ms\))")


class Failpoint:
    def __init__(self, action: str, at: int, sleep_ms: int) -> None:
        self.action, self.at, self.sleep_ms, self.seen = action, at, sleep_ms, 0

    def __call__(self) -> int:
        self.seen += 1
        if self.at not in (0, self.seen) or self.action == "off":
            return 0
        if self.action == "crash":
            os._exit(137)
        if self.action == "error":
            return 1
        time.sleep(self.sleep_ms / 1000)
        return 0


active: list[dict[str, Failpoint]] = []


def parse(spec: str) -> dict[str, Failpoint]:
    points: dict[str, Failpoint] = {}
    for entry in filter(None, (part.strip() for part in spec.split(";"))):
        match = _ENTRY.fullmatch(entry)
        if match is None or match[1] not in NAMES:
            from ._errors import ArgumentError

            raise ArgumentError(f"failpoint '{entry}': expected NAME=[N*]ACTION, a name of {', '.join(NAMES)}", code="argument")
        points[match[1]] = Failpoint(match[3].partition("(")[0], int(match[2] or 0), int(match[4] or 0))
    return points


def in_force() -> Callable[[str], int] | None:
    """What a save that begins now asks at each point, also when it goes on in the background after the block has ended."""
    points_now = list(active)
    if not points_now:
        return None

    def evaluate(name: str) -> int:
        answer = 0
        for points in points_now:
            if name in points:
                answer = points[name]() or answer
        return answer

    return evaluate
