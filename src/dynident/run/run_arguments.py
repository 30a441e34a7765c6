"""Arguments of the verbs around run files: init, run and demo."""

from __future__ import annotations

from argparse import ArgumentParser


def init_arguments(verb: ArgumentParser) -> None:
    """Of `dynident init`."""
    verb.add_argument("robot", metavar="ROBOT", help="robot file or bundled name")
    verb.add_argument("logs", nargs="+", metavar="FOLDER|LOG", help="folder with logs, or the logs themselves")
    help_output = "run file to write (default run.yaml)"
    verb.add_argument("-o", "--output", default="run.yaml", metavar="F.yaml", help=help_output)
    help_validation = "logs to judge the result with (default: chosen by name, else the last one)"
    verb.add_argument("--validation", nargs="+", default=[], metavar="LOG", help=help_validation)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for logs with other column names")
    verb.add_argument("--fresh", action="store_true", help="replace a run file that is there already")
    verb.add_argument("--quiet", action="store_true", help="no progress and nothing on the terminal")


def run_arguments(verb: ArgumentParser) -> None:
    """Of `dynident run`."""
    verb.add_argument("file", metavar="FILE", help="run file, as init writes it")
    verb.add_argument("--fresh", action="store_true", help="do not continue an earlier run in the output folder")
    verb.add_argument("--quiet", action="store_true", help="no progress and nothing on the terminal")


def demo_arguments(verb: ArgumentParser) -> None:
    """Of `dynident demo`."""
    help_output = "folder for fit.yaml and report.html (default dynident-demo)"
    verb.add_argument("-o", "--output", default="dynident-demo", metavar="OUT", help=help_output)
    verb.add_argument("--quiet", action="store_true", help="no progress and nothing on the terminal")
