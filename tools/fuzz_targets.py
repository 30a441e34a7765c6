"""What `tools/fuzz.py` mutates: for every kind of file some small ones that are sound, and how each is read.

A target writes its seeds with the library's own writers and those of the formats, so that no binary is kept in the
repository.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di

ROOT = Path(__file__).parent.parent
N = 24  # samples of a log


@dataclass(frozen=True)
class Target:
    """A kind of file.

    Attributes:
        name: Of the target.
        file: Name of the file that is mutated, beside others that are sound.
        seeds: Writes sound files of the kind into an empty folder; gives their contents.
        read: Reads the file at a path; its folder is that of the seeds.
        words: Texts that mean something in such a file.
        layers: What takes the outer packing off a content and puts it on again; empty where there is none.
        forks: Whether the reader starts processes of its own, and no engine may count on its own coverage.
    """

    name: str
    file: str
    seeds: Callable[[Path], list[bytes]]
    read: Callable[[Path], Any]
    words: tuple[bytes, ...] = ()
    layers: tuple[Callable[[bytes], list[bytes]], Callable[[bytes, list[bytes]], bytes]] | None = None
    forks: bool = False


# ----------------------------------------------------------------------------------------------------------------------
# Packings.


def _zip_parts(content: bytes) -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [archive.read(name) for name in archive.namelist()]


def _zip_whole(content: bytes, parts: list[bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(out, "w") as made:
        for name, part in zip(archive.namelist(), parts, strict=True):
            made.writestr(name, part)
    return out.getvalue()


ZIP = (_zip_parts, _zip_whole)
GZIP = (lambda content: [gzip.decompress(content)], lambda _, parts: gzip.compress(parts[0], mtime=0))


def _mat_parts(content: bytes) -> list[bytes]:
    """The compressed variables of a MATLAB v5 file; none of one without."""
    parts, at = [], 128
    while at + 8 <= len(content):
        kind, size = np.frombuffer(content[at : at + 8], "<u4")
        if kind != 15:
            return []
        parts.append(zlib.decompress(content[at + 8 : at + 8 + int(size)]))
        at += 8 + int(size)
    return parts


def _mat_whole(content: bytes, parts: list[bytes]) -> bytes:
    packed = [zlib.compress(part) for part in parts]
    return content[:128] + b"".join(np.array([15, len(one)], "<u4").tobytes() + one for one in packed)


MAT = (_mat_parts, _mat_whole)

# ----------------------------------------------------------------------------------------------------------------------
# Logs.


@functools.cache
def robot() -> di.Robot:
    """The robot that everything belongs to."""
    return di.load_robot("pendulum-2")


def columns() -> dict[str, np.ndarray]:
    """Channels of a log."""
    t = np.arange(N) / 100.0
    own = {"t": t}
    for k in (1, 2):
        own |= {f"q{k}": np.sin(k + 3.0 * t), f"tau{k}": np.cos(k + 2.0 * t)}
    return own


def _text(between: str = ",", units: str = "") -> bytes:
    data = columns()
    rows = np.column_stack(list(data.values())).tolist()
    return "\n".join(
        [between.join(data), *([units] if units else []), *(between.join(map(repr, x)) for x in rows)]
    ).encode()


def _text_seeds(folder: Path) -> list[bytes]:
    plain = _text()
    named = plain.replace(b"q1", b"q1 [deg]", 1).replace(b"tau1", b"tau1 (Nm)", 1)
    comment = b"# " + plain
    return [plain, _text(";"), _text("\t"), _text(" "), _text(units="s,rad,Nm,rad,Nm"), named, comment]


def _read_log(path: Path) -> Any:
    log = di.read_log(path, robot())
    for name, values in {"t": log.time, **log.channels}.items():
        if not np.isfinite(values).all():
            raise AssertionError(f"channel {name} is not finite")
    return log


def _read_bag(path: Path) -> Any:
    from dynident.logs.bag import list_topics

    list_topics(path)
    return _read_log(path)


def _written(write: Callable[[Path], object], ending: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        path = folder / f"seed{ending}"
        write(path)
        content = path.read_bytes()
        path.unlink()
        return [content]

    return seeds


def _all(*several: Callable[[Path], list[bytes]]) -> Callable[[Path], list[bytes]]:
    return lambda folder: [content for one in several for content in one(folder)]


def _parquet(**how: Any) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        import pyarrow as arrow
        from pyarrow import parquet

        parquet.write_table(arrow.table(columns() | {"note": ["x"] * N}), path, **how)

    return write


def _lerobot(folder: Path) -> list[bytes]:
    import pyarrow as arrow
    from pyarrow import parquet

    names = ["joint1", "joint2"]
    features = {
        "observation.state": {"dtype": "float32", "shape": [2], "names": [f"{name}.pos" for name in names]},
        "observation.effort": {"dtype": "float32", "shape": [2], "names": names},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        "episode_index": {"dtype": "int64", "shape": [1], "names": None},
        "frame_index": {"dtype": "int64", "shape": [1], "names": None},
    }
    (folder / "meta").mkdir(exist_ok=True)
    info = json.dumps({"robot_type": "two_arm", "fps": 100, "features": features})
    (folder / "meta" / "info.json").write_text(info)
    data = columns()
    states = {
        "observation.state": np.column_stack([data["q1"], data["q2"]]).astype("f4"),
        "observation.effort": np.column_stack([data["tau1"], data["tau2"]]).astype("f4"),
    }
    table = arrow.table(
        {name: arrow.FixedSizeListArray.from_arrays(x.ravel(), 2) for name, x in states.items()}
        | {"timestamp": data["t"].astype("f4"), "episode_index": np.repeat([0, 1], N // 2), "frame_index": np.arange(N)}
    )
    path = folder / "data.parquet"
    parquet.write_table(table, path)
    return [path.read_bytes()]


def _lerobot_info(folder: Path) -> list[bytes]:
    _lerobot(folder)
    return [(folder / "meta" / "info.json").read_bytes()]


def _mat(**how: Any) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        from scipy.io import savemat

        data = columns()
        inner = {"q": np.column_stack([data["q1"], data["q2"]]), "tau": np.column_stack([data["tau1"], data["tau2"]])}
        own = {"t": data["t"][:, None]}
        savemat(
            path, own | (inner if how.get("format") == "4" else {"data": inner, "c": np.array([1, "a"], object)}), **how
        )

    return write


def _mat73(path: Path) -> None:
    import h5py

    data = columns()
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("data")
        for place, (name, x) in enumerate(data.items()):
            own = (group if place else file).create_dataset(
                name, data=x[None, :], compression="gzip" if place else None
            )
            own.attrs["MATLAB_class"] = np.bytes_("double")
    head = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    with path.open("r+b") as file:
        file.write(head)


def _rsi(folder: Path) -> list[bytes]:
    row = '<Rob TYPE="KUKA"><AIPos A1="{a}" A2="{b}"/><MACur A1="{c}" A2="0.5"/><IPOC>{t}</IPOC></Rob>\n'
    data = columns()
    rows = (row.format(a=data["q1"][i], b=data["q2"][i], c=data["tau1"][i], t=4 * i) for i in range(N))
    return ["".join(rows).encode()]


def _bag(ros: int, how: str, ending: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        from benchmarks import bag_writers

        path = folder / ("seed.bag" if ros == 1 else "seed")
        data = columns()
        names = [joint.name for joint in robot().joints]
        position, effort = (np.column_stack([data[f"{kind}{k}"] for k in (1, 2)]) for kind in ("q", "tau"))
        messages = [
            ("/joint_states", 10**9 + 10**7 * i, bag_writers.joint_state(ros, 10**9 + 10**7 * i, names, q, 0 * q, tau))
            for i, (q, tau) in enumerate(zip(position, effort, strict=True))
        ]
        bag_writers.write_bag(path, ros, messages, how)
        file = path if path.is_file() else next(x for x in path.iterdir() if x.name.endswith(ending))
        content = file.read_bytes()
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return [content]

    return seeds


# ----------------------------------------------------------------------------------------------------------------------
# Robots.

_URDF = (
    '<robot name="arm"><link name="base"/>{links}</robot>',
    '<link name="l{k}"><inertial><origin xyz="0 0 0.1" rpy="0 0.1 0"/><mass value="2"/><inertia ixx="0.1" ixy="0" '
    'ixz="0" iyy="0.1" iyz="0" izz="0.05"/></inertial></link><joint name="j{k}" type="revolute"><parent '
    'link="{parent}"/><child link="l{k}"/><origin xyz="0 0 0.3" rpy="0 0 0"/><axis xyz="0 1 0"/><limit lower="-1" '
    'upper="1" velocity="2" effort="30"/><dynamics damping="0.1" friction="0.2"/></joint>',
)
_BODY = '<inertial pos="0 0 0.1" mass="{m}" diaginertia="0.02 0.02 0.01"/>'
_MJCF = f"""<mujoco model="m"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
<default><joint axis="0 1 0" armature="0.002" damping="0.05"/></default><worldbody>
<body name="a" pos="0 0 0.4">{_BODY.format(m=2)}<joint name="ja" range="-1 1"/><geom type="capsule" size="0.02 0.1"/>
<body name="b" pos="0.1 0 0" quat="1 0.2 0 0">{_BODY.format(m=1)}<joint name="jb" type="slide" axis="0 0 1"/></body>
</body></worldbody><tendon><fixed name="f"><joint joint="ja" coef="1"/><joint joint="jb" coef="2"/></fixed></tendon>
<equality><joint joint1="ja" joint2="jb" polycoef="0 1 0 0 0"/></equality>
<actuator><motor name="m" joint="ja" gear="3" forcerange="-5 5"/></actuator></mujoco>"""
_XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="mass" default="1"/>
<xacro:property name="length" value="0.3"/><xacro:macro name="rod" params="k parent mass:=1">
<link name="l${k}"><inertial><mass value="${2*mass}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
</inertial></link><joint name="j${k}" type="continuous"><origin xyz="0 0 ${length}"/><parent link="${parent}"/>
<child link="l${k}"/></joint></xacro:macro><link name="base"/><xacro:rod k="1" parent="base" mass="$(arg mass)"/>
<xacro:if value="${length > 0.1}"><xacro:rod k="2" parent="l1"/></xacro:if></robot>"""


def _urdf(folder: Path) -> list[bytes]:
    links = "".join(_URDF[1].format(k=k, parent="base" if k == 1 else f"l{k - 1}") for k in (1, 2))
    return [_URDF[0].format(links=links).encode()]


def _tables(folder: Path) -> list[bytes]:
    bundled = Path(di.__file__).parent / "robot" / "bundled"
    return [(bundled / f"{name}.yaml").read_bytes() for name in ("pendulum-2", "sr400", "puma560", "cylindrical")]


def _overlays(folder: Path) -> list[bytes]:
    own = (
        "base: pendulum-2\nname: two\nlimits:\n  q1: {lower: -1, upper: 1}\ncolumns: {a: q1, b: {column: q2, unit: deg}}\n",
        "base: puma560\ncoupling: {qm6: q5 + q6}\nsprings: [{joint: q2, stiffness: 120, rest: 0.4}]\n",
    )
    return [text.encode() for text in own]


def _read_robot(path: Path) -> Any:
    found = di.load_robot(path)
    for joint in found.joints:
        for frame in (joint.before, joint.after):
            if not (np.isfinite(frame.rotation).all() and np.isfinite(frame.translation).all()):
                raise AssertionError(f"the frame of {joint.name} is not finite")
    for name in found.values:
        if not all(np.isfinite(list(found.value_set(name).values()))):
            raise AssertionError(f"values {name} are not finite")
    return found


# ----------------------------------------------------------------------------------------------------------------------
# What dynident writes.


def _fit_folder(folder: Path) -> None:
    di.load_fit(ROOT / "tests" / "data" / "fit_1" / "basic").save(folder)


def _fit(name: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        _fit_folder(folder)
        return [(folder / name).read_bytes()]

    return seeds


def _read_fit(path: Path) -> Any:
    found = di.load_fit(path.parent)
    if not (np.isfinite(found.beta).all() and np.isfinite(found.std[found.determined]).all()):
        raise AssertionError("the estimate is not finite")
    return found


def _information(path: Path) -> None:
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 40, 2))
    tau = np.ones((40, 2))
    di.accumulate(robot(), q, dq, ddq, tau).save(path)


def _checkpoint(path: Path) -> None:
    own = di.OnlineIdentifier(robot(), terms="rigid,Ia,Fv,Fc,Fo")
    t = np.arange(600) / 100.0
    own.update_many(t, np.sin(np.outer(t, [3.0, 2.0])), np.cos(np.outer(t, [9.0, 7.0])))
    own.save(path)


def _report_seeds(folder: Path) -> list[bytes]:
    from dynident.estimate.torque_errors import Trace
    from dynident.report.plot_data import ReportData

    _fit_folder(folder)
    trace = Trace(np.arange(5.0), np.ones((5, 2)), np.ones((5, 2)))
    ReportData({"a": trace}).save(folder)
    return [(folder / "report.npz").read_bytes()]


def _read_report(path: Path) -> Any:
    from dynident.report.plot_data import load_report_data

    return load_report_data(path.parent)


def _drives(path: Path) -> None:
    from dynident.drives.identification import DriveEstimate
    from dynident.drives.replay import ReplayErrors
    from dynident.drives.storage import save_drives

    errors = ReplayErrors(np.ones(2), np.ones(2))
    names = ("kp1", "delay")
    own = DriveEstimate(
        names, ("N·m/rad", "s"), np.ones(2), np.eye(2), np.ones(2, bool), robot=robot(), kp=np.ones(2), kd=np.ones(2),
        gain_scale=np.ones(2), gain_scale_std=np.ones(2),
        evaluated=("a",), held_out=True, notes=(), warnings=(), before=errors, after=errors,
    )  # fmt: skip
    save_drives(own, path)


def _read_drives(path: Path) -> Any:
    from dynident.drives.storage import load_drives

    return load_drives(path)


def _motion(path: Path) -> None:
    from dynident.motion.point_to_point import PointToPoint
    from dynident.motion.simple import Locked, Sequence as Parts, Sinusoid
    from dynident.motion.storage import save_trajectory

    names = ("joint1", "joint2")
    first = PointToPoint(joints=names, points=[[0.0, 0.0], [1.0, 0.5]], durations=[2.0])
    then = Sinusoid(joints=("joint1",), start=[1.0], amplitude=[0.3], frequency=[0.5], length=2.0)
    save_trajectory(
        Parts(joints=names, parts=(first, Locked(joints=names, positions={"joint2": 0.5}, motion=then))), path
    )


def _read_motion(path: Path) -> Any:
    from dynident.motion.storage import load_trajectory

    found = load_trajectory(path)
    if not np.isfinite(found.duration):
        raise AssertionError("the motion does not end")
    return found


# ----------------------------------------------------------------------------------------------------------------------
# What people write beside robots and logs.

_RUN = """robot: pendulum-2
training: [beside.csv]
validation: beside.csv
output: out
identify: {band: 8, terms: rigid}
export: {urdf: model.urdf}
"""


def _run_seeds(folder: Path) -> list[bytes]:
    (folder / "beside.csv").write_bytes(_text())
    return [_RUN.encode()]


def _read_run(path: Path) -> Any:
    from dynident.cli.run_file import read_run_file

    return read_run_file(path)


def _read_stages(path: Path) -> Any:
    from dynident.pipeline.stage_file import read_stages

    return read_stages(path)


def _read_motors(path: Path) -> Any:
    from dynident.cli.step import _from_file

    _, found = _from_file(path, robot(), "joint")
    for x in found.values():
        if not np.isfinite(x).all():
            raise AssertionError("a motor is not finite")
    return found


def _read_effects(path: Path) -> Any:
    from dynident.cli.inputs import parse_effects

    return parse_effects(str(path))


def _read_unloaded(path: Path) -> Any:
    from dynident.cli.step import _read_unloaded

    return _read_unloaded(path, robot())


def _read_columns(path: Path) -> Any:
    from dynident.logs.columns import read_rules

    return read_rules(path)


def _read_packet(path: Path) -> Any:
    from dynident.online.sources.packets import PacketReader
    from dynident.online.state import Counters

    reader = PacketReader(robot(), None, path.name, Counters())
    found = reader.block([(0.0, line) for line in path.read_bytes().splitlines()])
    if found is not None and not np.isfinite(found.time).all():
        raise AssertionError("a stamp is not finite")
    return found


def _given(*contents: str) -> Callable[[Path], list[bytes]]:
    return lambda folder: [content.encode() for content in contents]


_UNLOADED = json.dumps(
    {
        "configurations": [
            {"joint": joint, "inertia": 0.3, "inertia_std": 0.01, "pose": [0.0, 0.1], "steps": [{"voltage": 0.8}] * 2}
            for joint in ("joint1", "joint2")
        ]
    }
)
_YAML = (b"[", b"{", b"- ", b": ", b"&a ", b"*a", b"!!", b"<<: ", b".nan", b"-.inf", b"1e400", b"null", b"|\n", b"? ")
_XML = (
    b"<",
    b"/>",
    b"</",
    b"<!--",
    b"<![CDATA[",
    b"&lt;",
    b"&x;",
    b"<!DOCTYPE ",
    b'=""',
    b"nan",
    b"1e999",
    b"-1",
    b"inf",
)
_MJ = (
    *_XML,
    b"<replicate count='9'>",
    b"<include file='a.xml'/>",
    b"<composite ",
    b"<flexcomp ",
    b"<freejoint/>",
    b"<frame>",
)
_JSON = (b"[", b"{", b"null", b"NaN", b"1e999", b"true", b'"', b"\\u0000", b"-1", b"1" * 400)
_TEXT = (b",", b"\n", b";", b"nan", b"inf", b"1e400", b"1" * 400, b"\t", b"#", b"[", b"(", b'"', b"\0", b"\xff")

TARGETS = {
    one.name: one
    for one in (
        Target("text", "log.csv", _text_seeds, _read_log, _TEXT),
        Target(
            "gzip", "log.csv.gz", lambda f: [gzip.compress(x, mtime=0) for x in _text_seeds(f)], _read_log, _TEXT, GZIP
        ),
        Target(
            "parquet",
            "log.parquet",
            _all(
                _written(_parquet(), ".parquet"),
                _written(_parquet(compression="zstd", data_page_version="2.0", row_group_size=9), ".parquet"),
                _written(_parquet(compression="none", use_dictionary=False), ".parquet"),
                _written(
                    _parquet(compression="gzip", column_encoding="DELTA_BINARY_PACKED", use_dictionary=False)
                    if False
                    else _parquet(compression="gzip"),
                    ".parquet",
                ),
            ),
            _read_log,
        ),
        Target("lerobot", "data.parquet", _lerobot, _read_log),
        Target(
            "lerobot-info",
            "meta/info.json",
            _lerobot_info,
            lambda path: _read_log(path.parent.parent / "data.parquet"),
            _JSON,
        ),
        Target(
            "mcap",
            "log.mcap",
            _all(_bag(2, "mcap", ".mcap"), _bag(2, "mcap message", ".mcap"), _bag(2, "mcap storage", ".mcap")),
            _read_bag,
            (b"\x05", b"\x06", b"zstd", b"lz4", b"cdr"),
        ),
        Target(
            "sqlite",
            "log.db3",
            _all(_bag(2, "sqlite", ".db3"), _bag(2, "sqlite message", ".db3")),
            _read_bag,
            (b"topics", b"messages", b"VIEW"),
        ),
        Target(
            "ros1",
            "log.bag",
            _all(*(_bag(1, how, ".bag") for how in ("", "bz2", "lz4"))),
            _read_bag,
            (b"op=", b"conn=", b"size=", b"none", b"bz2", b"lz4"),
        ),
        Target("rsi", "log.xml", _rsi, _read_log, (*_XML, b"<Rob", b"</Rob>", b"<IPOC>")),
        Target(
            "npz",
            "log.npz",
            _written(lambda path: np.savez_compressed(path, **columns()), ".npz"),
            _read_log,
            (b"<f8", b"|O", b"'shape': (", b"True"),
            ZIP,
        ),
        Target(
            "mat",
            "log.mat",
            _all(
                _written(_mat(), ".mat"),
                _written(_mat(do_compression=True), ".mat"),
                _written(_mat(format="4"), ".mat"),
            ),
            _read_log,
            layers=MAT,
            forks=True,
        ),
        Target("mat73", "log.mat", _written(_mat73, ".mat"), _read_log, forks=True),
        Target(
            "columns",
            "columns.yaml",
            _given("a: q1\nb: {column: q2, unit: deg, scale: -2}\nc: unused\n"),
            _read_columns,
            _YAML,
        ),
        Target("table", "robot.yaml", _tables, _read_robot, (*_YAML, b"pi/2", b"^8", b"sqrt(", b"q1")),
        Target("overlay", "robot.yaml", _overlays, _read_robot, (*_YAML, b"base: robot.yaml", b"loops:", b"springs:")),
        Target("urdf", "robot.urdf", _urdf, _read_robot, (*_XML, b"<mimic joint='j1'/>", b"floating", b"planar")),
        Target("mjcf", "robot.xml", _given(_MJCF), _read_robot, _MJ, forks=True),
        Target(
            "xacro",
            "robot.xacro",
            _given(_XACRO),
            _read_robot,
            (*_XML, b"${", b"$(find ", b"<xacro:include filename=''/>", b"<xacro:rod k='3'/>", b"**99", b"'a'*9"),
            forks=True,
        ),
        Target("fit", "fit.yaml", _fit("fit.yaml"), _read_fit, _YAML),
        Target("fit-arrays", "fit.npz", _fit("fit.npz"), _read_fit, layers=ZIP),
        Target("information", "run.npz", _written(_information, ".npz"), di.load_information, _JSON, ZIP),
        Target(
            "checkpoint",
            "run.npz",
            _written(_checkpoint, ".npz"),
            lambda path: di.OnlineIdentifier.load(path, robot()),
            _JSON,
            ZIP,
        ),
        Target("report", "report.npz", _report_seeds, _read_report, layers=ZIP),
        Target("drives", "drives.yaml", _written(_drives, ".yaml"), _read_drives, _YAML),
        Target("motion", "motion.yaml", _written(_motion, ".yaml"), _read_motion, _YAML),
        Target("run-file", "run.yaml", _run_seeds, _read_run, _YAML),
        Target(
            "stages",
            "stages.yaml",
            _given("wrist: {logs: wrist.csv, outputs: [q1, q2]}\narm:\n  logs: [a.csv, b.csv]\n"),
            _read_stages,
            _YAML,
        ),
        Target(
            "motors",
            "motors.yaml",
            _given("at: shaft\ntorque_constant: [1.2, 0.8]\nresistance: 2\nback_emf: {joint1: 1, joint2: 2}\n"),
            _read_motors,
            _YAML,
        ),
        Target("effects", "effects.yaml", _given("stop0.3_1: 4\nload_2: 0.05\n"), _read_effects, _YAML),
        Target("unloaded", "result.json", _given(_UNLOADED), _read_unloaded, _JSON),
        Target(
            "packets",
            "packets",
            _given(
                '{"t": 0.01, "q": [0.1, 0.2], "tau": [1, 2]}\n{"t": 0.02, "joints": {"joint1": {"q": 0.3, "tau": 1.2}, "joint2": {"q": 1, "tau": 2}}, "seq": 3}\n{"header": {"stamp": {"sec": 1, "nanosec": 0}}, "name": ["joint1", "joint2"], "position": [1, 2], "effort": [3, 4]}\n'
            ),
            _read_packet,
            _JSON,
        ),
    )
}


def write_seeds(target: Target, folder: Path) -> Sequence[bytes]:
    """The contents that a target starts from; what stands beside its file is written into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = target.seeds(folder)
    path = folder / target.file
    path.parent.mkdir(parents=True, exist_ok=True)
    return contents
