"""Commands in a terminal of their own: the state that Ctrl-C leaves it in, and background jobs."""

import os
import select
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rflaf

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
termios = pytest.importorskip("termios", reason="needs pseudo-terminals")

# the child of the fork does nothing but start another program
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
START = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits it ignored
from rflaf.cli import main
sys.argv[0] = "rflaf"
main()
"""


class Terminal:
    """A program that is the foreground job of a new terminal."""

    def __init__(self, code, *arguments, folder):
        self.process, self.screen = pty.fork()
        if not self.process:
            os.chdir(folder)
            os.environ |= {
                "PYTHONPATH": str(Path(rflaf.__file__).parents[1]), "TERM": "xterm",
                "PYTHONIOENCODING": "utf-8",
            }  # fmt: skip
            os.execv(sys.executable, [sys.executable, "-c", code, *arguments])
        self.text = ""

    def read(self, until=None):
        """Everything until these words, or until the program has closed the terminal."""
        while until is None or until not in self.text:
            if not select.select([self.screen], [], [], 300)[0]:
                raise TimeoutError(self.text)
            try:
                got = os.read(self.screen, 65536)
            except OSError:  # Linux: the other end is closed
                got = b""
            if not got:
                break
            self.text += got.decode(errors="replace")
        assert until is None or until in self.text, self.text
        return self.text

    def type(self, keys):
        os.write(self.screen, keys)

    def close(self):
        """The exit code."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        os.close(self.screen)
        return code


# runs that need no data and do not end by themselves
ENDLESS = """
import time
import rflaf.paper.runs
rflaf.paper.runs.run = lambda spec: time.sleep(600)
"""


@pytest.fixture
def here(tmp_path):
    rows = np.random.default_rng(0).normal(size=(20_000, 5))
    frame = pd.DataFrame(rows, columns=list("abcdy"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame[:100].to_csv(tmp_path / "small.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("code", "arguments", "shown"),
    [
        (START, ["fit", "t.csv", "--target", "y", "--components", "3000"], "Scoring on"),
        (ENDLESS + START, ["reproduce", "table1", "--datasets", "protein"], "protein/"),
    ],
    ids=["fit", "reproduce"],
)
def test_ctrl_c_leaves_the_terminal_as_it_was(code, arguments, shown, here):
    terminal = Terminal(code, *arguments, folder=here)
    before = termios.tcgetattr(terminal.screen)
    terminal.read(until=HIDE)
    terminal.read(until=shown)
    terminal.type(b"\x03")
    said = terminal.read(until="Interrupted.")
    after = termios.tcgetattr(terminal.screen)
    terminal.read()
    assert terminal.close() == 130
    assert after == before
    assert after[3] & termios.ECHO
    assert said.rindex(SHOW) > said.rindex(HIDE)
    assert "Traceback" not in terminal.text


BACKGROUND = """
import os, signal, subprocess, sys
job = [sys.executable, "-m", "rflaf", *sys.argv[1:]]
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.exit(subprocess.run(job, preexec_fn=os.setpgrp).returncode)
"""


def test_a_background_job_draws_no_progress(here):
    """It would hide the cursor, and draw over what is typed meanwhile."""
    arguments = ["fit", "small.csv", "--target", "y", "--components", "20"]
    terminal = Terminal(BACKGROUND, *arguments, folder=here)
    said = terminal.read()
    assert terminal.close() == 0, said
    assert "Model: model.skops" in said
    assert HIDE not in said
    assert "Fitting to" not in said


def test_a_background_job_is_not_interrupted(here):
    """Ctrl-C in a shell is for its foreground job; the others are started with SIGINT ignored."""
    struck = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from rflaf import tabular
fit_table = tabular.fit_table
def struck(*given, **named):
    signal.raise_signal(signal.SIGINT)
    return fit_table(*given, **named)
tabular.fit_table = struck
"""
    start = START.replace("signal.signal(", "# signal.signal(")
    arguments = ["fit", "small.csv", "--target", "y", "--components", "20"]
    terminal = Terminal(struck + start, *arguments, folder=here)
    said = terminal.read()
    assert terminal.close() == 0, said
    assert rflaf.load(here / "model.skops").target == "y"
