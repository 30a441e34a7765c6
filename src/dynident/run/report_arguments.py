"""Arguments of the verbs that read stored fits: report and compare."""

from __future__ import annotations

from argparse import ArgumentParser


def report_arguments(verb: ArgumentParser) -> None:
    """Of `dynident report`."""
    verb.add_argument("fit", metavar="FIT", help="fit.yaml, or the folder that identify wrote")
    help_output = "page to write (default: report.html beside the fit)"
    verb.add_argument("-o", "--output", default=None, metavar="F.html", help=help_output)
    verb.add_argument("--quiet", action="store_true", help="nothing on the terminal")


def compare_arguments(verb: ArgumentParser) -> None:
    """Of `dynident compare`."""
    help_fits = "two or more: fit.yaml, or the folder that identify wrote; the others are compared with the first"
    verb.add_argument("fits", nargs="+", metavar="FIT", help=help_fits)
    verb.add_argument("-o", "--output", default=None, metavar="F.html", help="page to write beside the tables")
    help_validation = "logs to judge all runs with (default: those that every run held out)"
    verb.add_argument("--validation", nargs="+", default=[], metavar="LOG", help=help_validation)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for logs with other column names")
    help_window = "only this part of every log, by its own stamps [s]"
    verb.add_argument("--window", default=None, metavar="START:STOP", help=help_window)
    verb.add_argument("--all", action="store_true", help="show parameters that agree as well")
    verb.add_argument("--quiet", action="store_true", help="nothing on the terminal")
