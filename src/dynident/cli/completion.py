"""Completion of verbs and options in a shell: a script made from the options records of the verbs.

`eval "$(dynident --print-completion bash)"` in ~/.bashrc, the same with zsh in ~/.zshrc, and
`dynident --print-completion fish > ~/.config/fish/completions/dynident.fish`. The script starts no Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dynident.options import option_fields, option_flags, option_help, option_type

SHELLS = ("bash", "zsh", "fish")


def completion_script(shell: str, verbs: Mapping[str, tuple[str, Any]]) -> str:
    """The script for a shell.

    Args:
        shell: One of `SHELLS`.
        verbs: What each verb does, and its options record.
    """
    if shell == "fish":
        return "\n".join(_fish_lines(verbs)) + "\n"
    lead = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return lead + _bash({verb: cls for verb, (_, cls) in verbs.items()})


def _flags(cls: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Flags of the options of a record, and their fields."""
    for name, field in option_fields(cls).items():
        if field.metadata.get("cli", True) and not field.metadata.get("positional"):
            yield option_flags(name, field), field


def _bash(verbs: Mapping[str, Any]) -> str:
    values, flags = [], []
    for verb, cls in verbs.items():
        own = list(_flags(cls))
        long = [flag for names, _ in own for flag in names if flag.startswith("--")]
        flags.append(f"    {verb}) flags='{' '.join(['--help', *long])}' ;;")
        for names, field in own:
            if "choices" in field.metadata:
                pattern = "|".join(f"{verb}:{flag}" for flag in names)
                values.append(f"    {pattern}) words='{' '.join(field.metadata['choices'])}' ;;")
    case = "\n".join
    return f"""\
_dynident() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" verb="${{COMP_WORDS[1]}}"
  local flags='' words=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(verbs)} --help --version --print-completion' -- "$current"))
    return
  fi
  case "$verb:$previous" in
{case(values)}
  esac
  case "$verb" in
{case(flags)}
  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [ "${{current#-}}" != "$current" ]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  fi
}}
complete -o default -F _dynident dynident
"""


def _fish_lines(verbs: Mapping[str, tuple[str, Any]]) -> Iterator[str]:
    for verb, (about, cls) in verbs.items():
        yield f"complete -c dynident -n __fish_use_subcommand -f -a {verb} -d '{_escape(about)}'"
        for names, field in _flags(cls):
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in names)
            choices = field.metadata.get("choices")
            value = f" -x -a '{' '.join(choices)}'" if choices else "" if option_type(field) is bool else " -r"
            about = _escape(option_help(field))
            yield f"complete -c dynident -n '__fish_seen_subcommand_from {verb}' {flags}{value} -d '{about}'"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
