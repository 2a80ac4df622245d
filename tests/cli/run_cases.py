"""Run the cases of one file against pawl: run_cases.py PAWL CASES [--update]

A file of cases is text:

    == what is shown                    a case; it runs in a fresh folder of its own
    # which bug it would catch          at least one such line
    $ pawl verify model.safetensors     a command for /bin/sh; `fixture` makes inputs (fixture.py)
    | a line of stdout, exactly
    ~ a regular expression for a whole line of stdout
    ! a line of stderr, exactly
    !~ a regular expression for a whole line of stderr
    ? 1                                 the exit status, when it is not 0

Everything that a command prints must be named. --update writes what the program says now into the file (the patterns that still fit
stay): read the difference before you believe it.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TIMEOUT_S = 30


class Command:
    def __init__(self, line, number):
        self.line, self.number = line, number
        self.out, self.err, self.status = [], [], 0


class Case:
    def __init__(self, name, number):
        self.name, self.number, self.goal, self.commands = name, number, [], []


def parse(path):
    cases = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if mark == "==":
            cases.append(Case(rest, number))
        elif mark == "#" and cases:
            cases[-1].goal.append(line)
        elif mark == "$":
            cases[-1].commands.append(Command(rest, number))
        elif mark in ("|", "~"):
            cases[-1].commands[-1].out.append((mark == "~", rest))
        elif mark in ("!", "!~"):
            cases[-1].commands[-1].err.append((mark == "!~", rest))
        elif mark == "?":
            cases[-1].commands[-1].status = int(rest)
        elif line.strip() and cases:
            sys.exit(f"{path}:{number}: not a line of a case: {line}")
    return cases


def fits(wanted, found):
    return len(wanted) == len(found) and all(
        re.fullmatch(text, line) if is_pattern else text == line for (is_pattern, text), line in zip(wanted, found))


def lines(data):
    return data.decode("utf-8", "backslashreplace").splitlines()


def show(kind, wanted, found):
    return "".join(f"    {kind} wanted: {text}\n" for _, text in wanted) + "".join(
        f"    {kind} found:  {line}\n" for line in found)


def run_case(case, environment, path):
    """The faults, as text. With --update the commands are changed to what was found."""
    faults = ""
    if not case.goal or not case.commands:
        return f"{path}:{case.number}: a case says what it is for, and runs something\n"
    with tempfile.TemporaryDirectory(prefix="pawl-cli-") as folder:
        for command in case.commands:
            try:
                done = subprocess.run(["sh", "-c", command.line], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                return faults + f"{path}:{command.number}: {case.name}: no end after {TIMEOUT_S} s: {command.line}\n"
            out, err = lines(done.stdout), lines(done.stderr)
            fine = fits(command.out, out) and fits(command.err, err) and done.returncode == command.status
            if not fine:
                faults += f"{path}:{command.number}: {case.name}\n    $ {command.line}\n"
                if not fits(command.out, out):
                    faults += show("stdout", command.out, out)
                if not fits(command.err, err):
                    faults += show("stderr", command.err, err)
                if done.returncode != command.status:
                    faults += f"    status wanted {command.status}, found {done.returncode}\n"
                if not fits(command.out, out):
                    command.out = [(False, line) for line in out]
                if not fits(command.err, err):
                    command.err = [(False, line) for line in err]
                command.status = done.returncode
    return faults


def write(path, head, cases):
    text = head
    for case in cases:
        text += f"\n== {case.name}\n" + "".join(f"{line}\n" for line in case.goal)
        for command in case.commands:
            text += f"$ {command.line}\n"
            text += "".join(f"{'~' if p else '|'} {t}\n" if t else "|\n" for p, t in command.out)
            text += "".join(f"{'!~' if p else '!'} {t}\n" for p, t in command.err)
            text += f"? {command.status}\n" if command.status else ""
    path.write_text(text)


def main():
    program, path = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory(prefix="pawl-bin-") as bin_name:
        folder = pathlib.Path(bin_name)
        (folder / "pawl").symlink_to(program)
        fixture = folder / "fixture"
        fixture.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{here}/fixture.py" "$@"\n')
        fixture.chmod(0o755)
        environment = {"PATH": f"{folder}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "xterm",
                       "GOLDEN": str(here.parent / "golden")}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"):
            if name in os.environ:
                environment[name] = os.environ[name]
        cases = parse(path)
        faults = "".join(run_case(case, environment, path) for case in cases)
    if "--update" in sys.argv and faults:
        head = path.read_text().split("\n== ")[0].rstrip("\n") + "\n"
        write(path, head, cases)
    sys.stdout.write(faults)
    print(f"{path.name}: {len(cases)} cases, {sum(len(case.commands) for case in cases)} commands")
    if not cases:
        sys.exit("no cases")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
