#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the completions of bash, zsh and fish from the program's own tables: completions.py WEIR FOLDER"""

import re
import sys
from pathlib import Path

from options_table import read_commands

# Commands whose arguments are files, and what `standing` takes as its first.
FILES = {"validate", "replay"}
STANDING = ["list", "show", "set", "clear", "history"]


def takes_file(option):
    return bool(re.search("FILE", option.value))


def takes_folder(option):
    return bool(re.search("DIR|FOLDER", option.value))


def quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def first_line(option):
    return option.help.split("\n", 1)[0]


def bash_values(command):
    """The cases of options that take a value."""
    out = []
    for option in command.options():
        if not option.value:
            continue
        names = [f"--{option.name}"] + ([f"-{option.letter}"] if option.letter else [])
        action = "_weir_files" if takes_file(option) else "_weir_folders" if takes_folder(option) else \
            f"_weir_words {quote(' '.join(option.choices()))}" if option.choices() else "COMPREPLY=()"
        cases = " | ".join(f"{command.name}\\ {name}" for name in names)
        out.append(f"        {cases}) {action}; return ;;")
    return out


def bash(commands):
    names = " ".join(command.name for command in commands)
    values = "\n".join(line for command in commands for line in bash_values(command))
    options = "\n".join(
        f"        {command.name}) options={quote(' '.join('--' + o.name for o in command.options()))} ;;"
        for command in commands)
    files = " | ".join(name + "\\ *" for name in sorted(FILES))
    return f"""# bash completion of weir
_weir_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }}
_weir_files() {{ compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word"); }}
_weir_folders() {{ compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$word"); }}

_weir() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} options=
    local command=${{COMP_WORDS[1]}}
    # Bash takes "--name=value" for three words.
    if [ "$word" = = ]; then
        word=
    elif [ "$before" = = ]; then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    if [ "$COMP_CWORD" = 1 ]; then
        _weir_words {quote(names + " --help --version")}
        return
    fi
    case "$command $before" in
{values}
    esac
    case "$command" in
{options}
    esac
    case "$command $word" in
        *\\ -*) _weir_words "$options" ;;
        standing\\ *) if [ "$COMP_CWORD" = 2 ]; then _weir_words {quote(" ".join(STANDING))}; fi ;;
        {files}) _weir_files ;;
    esac
}}
complete -F _weir weir
"""


def zsh_option(option):
    text = first_line(option).translate(str.maketrans({"[": "(", "]": ")", ":": ";"}))
    value = ""
    if option.value:
        action = "_files" if takes_file(option) else "_files -/" if takes_folder(option) else \
            f"({' '.join(option.choices())})" if option.choices() else " "
        value = f":{option.value.replace(':', ' ')}:{action}"
    out = [quote(f"*--{option.name}{'=' if option.value else ''}[{text}]{value}")]
    if option.letter:
        out.append(quote(f"*-{option.letter}{'+' if option.value else ''}[{text}]{value}"))
    return out


def zsh(commands):
    line_end = "\n"
    described = "\n".join(f"        {quote(c.name + ':' + c.summary)}" for c in commands)
    cases = []
    for command in commands:
        parts = [part for option in command.options() for part in zsh_option(option)]
        if command.name in FILES:
            parts.append("'*:file:_files'")
        if command.name == "standing":
            parts.append(quote(f"1:what:({' '.join(STANDING)})"))
        cases.append(f"        {command.name})\n            _arguments -s \\\n                " +
                     " \\\n                ".join(parts) + "\n            ;;")
    return f"""#compdef weir
_weir() {{
    local -a commands
    commands=(
{described}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
{line_end.join(cases)}
    esac
}}
_weir "$@"
"""


def fish_option(command, option):
    line = f"complete -c weir -n '__fish_seen_subcommand_from {command.name}' -l {option.name}"
    if option.letter:
        line += f" -s {option.letter}"
    if takes_file(option):
        line += " -r -F"
    elif takes_folder(option):
        line += " -x -a '(__fish_complete_directories)'"
    elif option.value:
        line += " -x" + (f" -a {quote(' '.join(option.choices()))}" if option.choices() else "")
    return line + " -d " + quote(first_line(option)).replace("'\\''", "\\'")


def fish(commands):
    names = " ".join(command.name for command in commands)
    lines = ["# fish completion of weir", "complete -c weir -f"]
    for command in commands:
        lines.append(f"complete -c weir -n 'not __fish_seen_subcommand_from {names}' -a {command.name} "
                     f"-d {quote(command.summary)}".replace("'\\''", "\\'"))
    for command in commands:
        lines += [fish_option(command, option) for option in command.options()]
        if command.name in FILES:
            lines.append(f"complete -c weir -n '__fish_seen_subcommand_from {command.name}' -F")
        if command.name == "standing":
            lines.append("complete -c weir -n '__fish_seen_subcommand_from standing' -a "
                         + quote(" ".join(STANDING)))
    return "\n".join(lines) + "\n"


def main(program, folder):
    commands = read_commands(program)
    for name, text in (("weir", bash(commands)), ("_weir", zsh(commands)), ("weir.fish", fish(commands))):
        (Path(folder) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
