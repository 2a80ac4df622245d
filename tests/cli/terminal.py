"""On a terminal: terminal.py PAWL

Goal: the live line is drawn on a terminal and nowhere else, is gone at the end, and colour is for terminals that want it. Method: a
pseudo-terminal as stdout and stderr.
"""
import os
import pty
import subprocess
import sys
import tempfile

from trainer import Trainer, expect


def on_terminal(words, folder, **environment):
    master, slave = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    process = subprocess.Popen(words, cwd=folder, stdin=slave, stdout=slave, stderr=slave,
                               env={**env, "TERM": "xterm", **environment})
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux says EIO when the last holder of the other end is gone
            break
        if not part:
            break
        text += part
    os.close(master)
    expect(process.wait() == 0, f"{words}: {process.returncode}: {text}")
    return text.decode()


def main():
    with tempfile.TemporaryDirectory(prefix="pawl-terminal-") as folder:
        trainer = Trainer(sys.argv[1], folder)
        # a sleep in one step, so that there is time for a line to be drawn
        text = on_terminal(trainer.words("a", steps=30, every=10), folder,
                           PAWL_FAILPOINTS="train/after-step=15*sleep(300ms)")
        expect("\rstep 16/30  loss " in text and " tokens/s  ETA " in text and "saved step-000010\033[K" in text, repr(text))
        expect("pawl train bigram: step" not in text, f"plain lines on a terminal: {text!r}")
        expect(text.index("\r\033[K{") > text.rindex("tokens/s"), f"the live line is not taken away: {text!r}")
        text = on_terminal([*trainer.words("b", steps=30, every=10), "--quiet"], folder)
        expect(text.startswith("{") and text.count("\n") == 1, f"quiet: {text!r}")
        text = on_terminal(trainer.words("c", steps=30, every=10), folder, TERM="dumb")
        expect("\033" not in text and "saved step-000010" in text, f"dumb: {text!r}")

        pawl = trainer.program
        expect("\033[1m" in on_terminal([pawl, "info", "a"], folder), "no colour on a terminal")
        expect("\033" not in on_terminal([pawl, "info", "a"], folder, NO_COLOR="1"), "colour against NO_COLOR")
        expect("\033[1m" in on_terminal([pawl, "info", "a"], folder, NO_COLOR=""), "an empty NO_COLOR counts as none")
        expect("\033" not in on_terminal([pawl, "info", "a", "--color=never"], folder), "colour against --color never")


main()
