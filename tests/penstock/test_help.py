"""``--help``, completion, and what is said about words that are not known."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from penstock import cli, completion
from penstock.help import sentences, usage
from server.config.file import ConfigError
from tests.support.process import ROOT

PAGE = (ROOT / "docs" / "configuration.md").read_text()


def test_no_sentence_is_told_twice() -> None:
    named = [name for found in sentences().values() for name in found]
    assert len(named) == len(set(named))


def test_the_sentences_are_those_of_the_page_of_settings() -> None:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", PAGE)
    older = re.compile(r"Older name of (.*)\.")
    for found in sentences().values():
        for name, sentence in found.items():
            if newer := older.fullmatch(sentence):
                assert f"\n| {newer[1]}, {name} |" in text
            else:
                row = rf"^\| {name}(, \S+)? \|.*{re.escape(sentence.rstrip('.'))}"
                assert re.search(row, text, re.M), name


def test_help_names_every_tool_and_every_setting_within_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = usage()
    for tool in cli.TOOLS:
        assert f"penstock {tool} " in text
    for found in sentences().values():
        for name in found:
            assert f"\n  --{name}" in text
    sentence = [line for line in text.splitlines() if re.match("      [A-Z]", line)]
    assert max(map(len, sentence)) <= 60


def test_the_page_about_the_command_line_names_what_asks_a_server() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    for tool in cli.LOOKING:
        assert f"`penstock {tool}" in page


def test_a_word_that_is_nearly_one_is_asked_about() -> None:
    text = r"^command line: prot: unknown setting; did you mean 'port'\?$"
    with pytest.raises(ConfigError, match=text):
        cli.configure(["--prot", "7000"], None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^tpo: no such tool, .*; did you mean 'top'\?$"):
        cli.configure(["tpo"], None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^command line: qqqq: unknown setting$"):
        cli.configure(["--qqqq", "1"], None)  # type: ignore[arg-type]


def test_the_port_has_a_short_option() -> None:
    assert cli.configure(["-p", "7000"], None).port == 7000  # type: ignore[arg-type]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_shell_takes_the_script_and_knows_tools_and_settings(shell: str) -> None:
    script = completion.script(shell, cli.TOOLS)
    for word in ("doctor", "appendfsync"):
        assert word in script
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=script, text=True, check=True)


def test_bash_completes_a_tool_a_setting_and_a_file() -> None:
    script = completion.script("bash", cli.TOOLS)
    ask = f"{script}\nCOMP_WORDS=(penstock $1); COMP_CWORD=1; _penstock; echo ${{COMPREPLY[@]}}"

    def completed(word: str) -> str:
        done = subprocess.run(
            ["bash", "-c", ask, "-", word], capture_output=True, text=True, cwd=ROOT
        )
        return done.stdout.strip()

    assert completed("doc") == "doctor docs"
    assert completed("--appendf") == "--appendfsync --appendfilename"


def test_the_tool_says_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert completion.main(["--help"], cli.TOOLS) == 0
    assert "penstock completion fish | source" in capsys.readouterr().out
    assert completion.main(["tools"], cli.TOOLS) == 0
    assert capsys.readouterr().out.split() == [*cli.TOOLS]
    assert completion.main(["csh"], cli.TOOLS) == 2
    assert completion.main(["bash"], cli.TOOLS) == 0
    assert "complete -F _penstock penstock" in capsys.readouterr().out
