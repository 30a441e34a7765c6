"""Times a person waits: import, help, inspect."""

from __future__ import annotations

import subprocess
import sys

from harness import once, seconds


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def main() -> None:
    print("Start-up (whole process)")
    command = ("-m", "dynident.cli.command_line")
    everything = ("--terms", "rigid,Ia,Fv,Fc,Fo")
    for what, arguments, limit in (
        ("import dynident", ("-c", "import dynident"), 0.3),
        ("dynident --help", (*command, "--help"), 0.5),
        ("dynident inspect panda, all terms", (*command, "inspect", "panda", *everything), 2.0),
        ("dynident inspect sr400, all terms", (*command, "inspect", "sr400", *everything), 5.0),
    ):
        taken = once(lambda arguments=arguments: run(*arguments))
        print(f"{what:44}{seconds(taken):>11}   (aim: {limit:g} s)")


if __name__ == "__main__":
    main()
