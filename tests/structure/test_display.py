"""Every public object shows itself on ten lines, notebooks get tables, and numbers come as data frames."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import dynident as di
from dynident.display import MAX_LINES, brief_value, data_frame, html_table, short_repr
from dynident.errors import DynidentError, UnknownNameError
from tests.cli.fits import ARM, FIRST, LOADED, OTHER, fit_of

LINE = 100  # characters that a terminal shows on one line
PLAIN = re.compile(r"(str|bool|int|float|Path|Literal\[.*\]|Severity|Grade|Basis|Role|JointKind|None)( \| \w+)*")


def public_classes() -> list[type]:
    """Every class that a namespace or the top level exports."""
    homes = [di, *(getattr(di, name) for name in di._NAMESPACES)]
    found = [getattr(home, name, None) for home in homes for name in getattr(home, "__all__", dir(home))]
    own = {one for one in found if inspect.isclass(one) and one.__module__.startswith("dynident")}
    return sorted(own, key=lambda one: (one.__module__, one.__name__))


def n_lines(text: str) -> int:
    return sum(max(1, math.ceil(len(line) / LINE)) for line in text.splitlines())


def test_no_public_record_prints_arrays_or_records_in_full():
    """A repr made by dataclasses is for records of plain values; the others have their own, or a brief one."""
    classes = public_classes()
    assert len(classes) > 150
    offenders = []
    for cls in filter(dataclasses.is_dataclass, classes):
        automatic = hasattr(cls.__repr__, "__wrapped__") and cls.__repr__ is not short_repr
        plain = all(PLAIN.fullmatch(str(field.type)) for field in dataclasses.fields(cls) if field.repr)
        if automatic and not plain:
            offenders.append(f"{cls.__module__}.{cls.__name__}")
    assert not offenders


@pytest.fixture(scope="module")
def graph() -> dict[type, list[object]]:
    """Objects of all kinds that hang on a fit, its logs, and what is made of them."""
    arm = di.load_robot(ARM)
    fit, log, other = fit_of(FIRST), di.read_log(FIRST, arm), di.read_log(OTHER, arm)
    observed = di.observe(log, arm)
    roots = [fit, log, observed, next(iter(observed.motion(()))), di.open_log(FIRST, arm), fit.model]
    roots += [di.validate(fit, other), di.compare_fits([fit, fit]), di.check_logs(arm, [log]), di.preview(log)]
    roots += [
        di.identify_payload(fit, di.read_log(LOADED, arm)),
        di.physical_fit(fit),
        di.IdentifyOptions(friction="basic"),
    ]
    roots += [di.load_trajectory(ARM.replace("arm.yaml", "fourier_1.yaml")), *map(di.load_robot, di.bundled_names())]
    found: dict[type, list[object]] = {}
    seen: dict[int, object] = {}
    waiting: list[object] = list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one  # which keeps it alive, and its id its own
        if isinstance(one, dict):
            waiting += list(one.values())[:50]
        elif isinstance(one, tuple | list):
            waiting += one[:50]
        elif type(one).__module__.startswith("dynident"):
            found.setdefault(type(one), []).append(one)
            waiting += vars(one).values() if hasattr(one, "__dict__") else []
    return found


def test_every_public_object_shows_itself_on_ten_lines(graph):
    classes = set(public_classes())
    shown = {cls: objects for cls, objects in graph.items() if cls in classes}
    assert len(shown) > 40
    long = {cls.__name__: repr(one) for cls, own in shown.items() for one in own if n_lines(repr(one)) > MAX_LINES}
    assert not long


def test_a_brief_record():
    @dataclasses.dataclass
    class Made:
        values: np.ndarray
        name: str
        parts: tuple
        own: object = None

    made = Made(np.zeros((3, 2)), "x" * 200, tuple(range(50)), di.Payload(2.0, (0, 0, 0), (1, 0, 0, 1, 0, 1)))
    text = short_repr(made)
    assert text.startswith("Made(values=array(3, 2), name='xxx")
    assert "parts=(50 int), own=Payload(..)" in " ".join(text.split())
    assert n_lines(short_repr(Made(*["y" * 60] * 4))) <= MAX_LINES
    many = dataclasses.make_dataclass("Many", [(f"field_{i}", str, "z" * 50) for i in range(60)])()
    assert len(short_repr(many).splitlines()) == MAX_LINES
    assert short_repr(many).endswith("..)")
    assert brief_value(0.1 + 0.2) == "0.3"
    assert brief_value({}) == "{}"


def test_options_show_what_was_given():
    assert repr(di.IdentifyOptions()) == "IdentifyOptions()"
    assert repr(di.IdentifyOptions(friction="basic", band=6.0)) == "IdentifyOptions(friction='basic', band=6)"


@pytest.mark.parametrize(
    "name", ["Fit", "Robot", "Log", "BaseParameters", "Validation", "Diagnosis", "ParameterEstimate"]
)
def test_notebooks_show_tables(graph, name):
    own = next(objects for cls, objects in graph.items() if cls.__name__ == name)
    page = own[0]._repr_html_()
    assert page.count("<tr>") == page.count("</tr>") > 1
    assert page.count("<table>") == 1


def test_names_from_files_are_no_markup_in_notebooks():
    assert "<script>" not in html_table(("a",), [("<script>",)], "<script>")


class TestDataFrames:
    fit = staticmethod(lambda: fit_of(FIRST))

    def test_parameters(self):
        pandas = pytest.importorskip("pandas")
        frame = self.fit().to_frame()
        assert isinstance(frame, pandas.DataFrame)
        assert tuple(frame.index) == self.fit().names
        np.testing.assert_array_equal(frame["value"], self.fit().beta)

    def test_channels(self):
        pytest.importorskip("pandas")
        log = di.read_log(FIRST)
        frame = log.to_frame()
        assert list(frame.columns) == ["t", *log.channels]
        np.testing.assert_array_equal(frame["q1"], log.channels["q1"])

    def test_polars_where_there_is_no_pandas(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(DataFrame=lambda columns: ("polars", columns)))
        kind, columns = self.fit().to_frame()
        assert kind == "polars"
        assert columns["name"] == list(self.fit().names)  # it has no index

    def test_neither_is_an_error_that_says_what_to_install(self, monkeypatch):
        for name in ("pandas", "polars"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(DynidentError, match="to_frame needs pandas or polars: pip install pandas"):
            self.fit().to_frame()
        with pytest.raises(DynidentError, match="pip install polars"):
            data_frame({}, "polars")
        with pytest.raises(UnknownNameError, match="did you mean 'pandas'"):
            data_frame({}, "panda")


def test_a_parameter_by_name():
    fit = fit_of(FIRST)
    found = fit.parameter("MXR2")
    place = fit.names.index("MXR2")
    assert (found.value, found.std, found.unit) == (fit.beta[place], fit.std[place], "kg·m")
    assert found.meaning == "first moment along x of link 2"
    assert found.expression == "MX2 - a2 M3 - a2 M4 - a2 M5 - a2 M6"
    assert re.fullmatch(r"MXR2 = -8\.\d+ ± 0\.\d+ kg·m: first moment along x of link 2 = MX2 - a2 M3 .*", str(found))
    lost = fit.replace(determined=np.arange(len(fit.names)) != place).parameter("MXR2")
    assert (lost.std, lost.determined) == (None, False)
    assert "not determined" in str(lost)
    with pytest.raises(UnknownNameError, match="did you mean 'MXR2'"):
        fit.parameter("MXR22")


def test_help_of_identify_reads_well():
    """Each option with its meaning, where a reader of help() looks for it."""
    text = inspect.getdoc(di.identify)
    for name in di.IdentifyOptions.__dataclass_fields__:
        assert f"\n    {name}: " in text
    assert "Returns:" in text
    assert "Example" in text
    assert max(map(len, text.splitlines())) <= 120


def test_hints_name_packages_that_an_extra_of_ours_installs():
    import tomllib
    from pathlib import Path

    root = Path(di.__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    known = [*project["dependencies"], *(x for own in project["optional-dependencies"].values() for x in own)]
    packages = {re.match(r"[\w-]+", one)[0].lower() for one in known} | {"robot_descriptions", "polars"}
    hints = [
        (path.name, name)
        for path in [*(root / "src").rglob("*.py"), root / "README.md", *(root / "docs").rglob("*.md")]
        for name in re.findall(r"pip install ([\w-]+)", path.read_text())
    ]
    assert len(hints) > 15
    assert not {hint for hint in hints if hint[1].lower() not in packages}


def test_plots_need_matplotlib_and_say_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DynidentError, match="pip install matplotlib"):
        di.plots.friction(fit_of(FIRST))


def test_namespaces_load():
    for name, module in di._NAMESPACES.items():
        assert getattr(di, name) is importlib.import_module(module)
