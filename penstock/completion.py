"""``penstock completion``: lets a shell complete tools and settings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from penstock.help import sentences

BASH: Final = """\
_penstock() {{
  local word=${{COMP_WORDS[COMP_CWORD]}}
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W '{tools} {options}' -- "$word") $(compgen -f -- "$word"))
  elif [[ " {tools} " == *" ${{COMP_WORDS[1]}} "* ]]; then
    COMPREPLY=($(compgen -W '--help --url' -- "$word") $(compgen -f -- "$word"))
  else
    COMPREPLY=($(compgen -W '{options}' -- "$word") $(compgen -f -- "$word"))
  fi
}}
complete -F _penstock penstock
"""

ZSH: Final = """\
#compdef penstock
_penstock() {{
  local -a tools options
  tools=({tools})
  options=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe tool tools
    _describe option options
    _files
  elif (( ${{tools[(Ie)$words[2]]}} )); then
    _values option --help --url
    _files
  else
    _describe option options
    _files
  fi
}}
compdef _penstock penstock
"""

SHELLS: Final = ("bash", "zsh", "fish")


def script(shell: str, tools: Sequence[str]) -> str:
    """Return what a shell runs to complete the command and its tools."""
    about = {name: text for found in sentences().values() for name, text in found.items()}
    if shell == "fish":
        return _fish(tools, about)
    quoted = {name: text.replace("'", "'\\''").replace(":", "\\:") for name, text in about.items()}
    return (BASH if shell == "bash" else ZSH).format(
        tools=" ".join(tools),
        options=" ".join(f"--{name}" for name in about),
        described="\n".join(f"    '--{name}:{text}'" for name, text in quoted.items()),
    )


def _fish(tools: Sequence[str], about: dict[str, str]) -> str:
    lines = [f"complete -c penstock -n __fish_use_subcommand -a '{' '.join(tools)}'"]
    for name, text in about.items():
        quoted = text.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c penstock -l {name} -d '{quoted}'")
    return "\n".join(lines) + "\n"


def main(args: Sequence[str], tools: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns the exit status."""
    if list(args) == ["tools"]:
        print("\n".join(tools))
        return 0
    if len(args) != 1 or args[0] not in SHELLS:
        print(
            "Usage: penstock completion bash | zsh | fish | tools\n\n"
            '  bash   eval "$(penstock completion bash)"          in ~/.bashrc\n'
            '  zsh    eval "$(penstock completion zsh)"           in ~/.zshrc, behind compinit\n'
            "  fish   penstock completion fish | source           in ~/.config/fish/config.fish\n"
            "  tools  the names of the tools, one a line, for scripts",
            file=sys.stdout if args in (["-h"], ["--help"]) else sys.stderr,
        )
        return 0 if args in (["-h"], ["--help"]) else 2
    print(script(args[0], tools), end="")
    return 0
