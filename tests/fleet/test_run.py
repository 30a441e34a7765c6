"""A fleet's parameters are those of `identify`; runs repeat nothing, lose nothing, and name what they cannot use."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
from distributed import Client, LocalCluster

import dynident as di
from dynident.fleet.mapping import MapJob, map_log
from dynident.fleet.pilot import load_pilot, pinned_options, stored_pilots
from dynident.fleet.reading import LogReader
from dynident.fleet.running import current_rows, run_fleet
from dynident.fleet.store import FleetStore, StoreError
from dynident.options import plain_options
from dynident.pipeline.options import IdentifyOptions
from tests.fleet.faulty_writes import full_disk
from tests.fleet.made import values_of, write_fleet, write_log

NONE_HELD_OUT = "validation: 0\n"


def parameters(store) -> dict[tuple[str, str], float]:
    return {(row["robot"], row["name"]): row["value"] for row in FleetStore.open(store).answers("parameters")}


def largest_difference(first, second) -> float:
    assert first.keys() == second.keys()
    return max(abs(first[key] - second[key]) / max(abs(first[key]), 1e-12) for key in first)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    return write_fleet(tmp_path_factory.mktemp("fleet"), robots=2, logs=4, options=NONE_HELD_OUT)


@pytest.fixture(scope="module")
def finished(fleet, cluster):
    store = fleet.parent / "store"
    return run_fleet(fleet, store, scheduler=cluster), store


@pytest.fixture
def copied(finished, fleet, tmp_path):
    """A fleet of its own with the logs of another, which have not changed."""
    shutil.copytree(fleet.parent, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "store")
    return tmp_path / "copy" / "fleet.yaml"


def test_parameters_are_those_of_identify_with_the_choices_of_the_pilot(finished, fleet):
    done, store = finished
    assert (done.robots, done.finished, done.failed, done.unfinished) == (2, 8, {}, {})
    for pilot in stored_pilots(FleetStore.open(store)):
        fit = load_pilot(FleetStore.open(store).folder / pilot.folder)
        folder = fleet.parent / "logs" / pilot.period.robot
        logs = [di.read_log(path, fit.robot) for path in sorted(folder.iterdir())]
        how = plain_options(pinned_options(fit, IdentifyOptions()), IdentifyOptions)
        same = di.identify(fit.robot, logs, **how)
        assert same.rank == len(same.names)  # of full rank, so that the parameters are what they are
        own = di.load_fit(store / "robots" / pilot.period.robot)
        assert own.names == same.names
        np.testing.assert_allclose(own.beta, same.beta, rtol=1e-10)
        truth = values_of(fit.robot, seed=int(pilot.period.robot[1:]) - 1, spread=0.02)
        base = own.base.K @ truth
        assert np.all(np.abs(own.beta - base) < 5.0 * own.std)


@pytest.mark.full
def test_standard_deviations_are_near_those_of_identify(finished, fleet):
    own = di.load_fit(finished[1] / "robots" / "A1")
    same = di.identify(
        own.robot,
        [di.read_log(path, own.robot) for path in sorted((fleet.parent / "logs" / "A1").iterdir())],
        **plain_options(pinned_options(own, IdentifyOptions()), IdentifyOptions),
    )
    assert np.all((own.std / same.std > 0.5) & (own.std / same.std < 2.0))


def test_workers_and_order_do_not_matter(finished, copied, cluster):
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as inner,
        Client(inner) as client,
    ):
        run_fleet(copied, copied.parent / "one", scheduler=client)
    mine, other = parameters(finished[1]), parameters(copied.parent / "one")
    assert largest_difference(mine, other) < 1e-11
    # Other names reverse the order in which logs are listed; dates, which order them, stay.
    for folder in (copied.parent / "logs").iterdir():
        for number, path in enumerate(sorted(folder.iterdir(), reverse=True)):
            path.rename(folder / f"{number}_{path.name}")
    text = copied.read_text().replace("{date}", "?_{date}")
    copied.write_text(text)
    run_fleet(copied, copied.parent / "turned", scheduler=cluster)
    assert largest_difference(parameters(copied.parent / "turned"), mine) < 1e-11


def test_a_second_run_does_nothing_and_a_third_what_is_new(copied, cluster):
    store = copied.parent / "store"
    run_fleet(copied, store, scheduler=cluster)
    factors = {path: path.stat().st_mtime_ns for path in store.rglob("*.npz")}
    again = run_fleet(copied, store, scheduler=cluster)
    assert (again.finished, again.known, again.pilots) == (0, 8, 0)
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*.npz")} == factors
    arm = di.load_robot("pendulum-2")
    new = copied.parent / "logs" / "A1" / "2026-03-20.parquet"
    write_log(new, arm, values_of(arm, seed=0, spread=0.02), seed=77)
    before = parameters(store)
    third = run_fleet(copied, store, scheduler=cluster)
    assert (third.finished, third.known) == (1, 8)
    after = parameters(store)
    changed = {robot for robot, name in after if after[robot, name] != before[robot, name]}
    assert changed == {"A1"}
    # A copy of a log is no new data, and is not gone through a second time.
    shutil.copy(new, copied.parent / "logs" / "A1" / "2026-03-21.parquet")
    run_fleet(copied, store, scheduler=cluster)
    assert parameters(store) == after


@pytest.mark.full
def test_a_changed_log_takes_the_place_of_the_old_one(copied, cluster):
    store = copied.parent / "store"
    run_fleet(copied, store, scheduler=cluster)
    path = sorted((copied.parent / "logs" / "A2").iterdir())[-1]
    arm = di.load_robot("pendulum-2")
    write_log(path, arm, values_of(arm, seed=1, spread=0.02), seed=991)
    assert run_fleet(copied, store, scheduler=cluster).finished == 1
    fresh = copied.parent / "fresh"
    run_fleet(copied, fresh, scheduler=cluster)
    assert largest_difference(parameters(store), parameters(fresh)) < 1e-11


@pytest.mark.full
def test_other_options_start_a_new_period(copied, cluster):
    store = copied.parent / "store"
    run_fleet(copied, store, scheduler=cluster)
    copied.write_text(copied.read_text() + "identify: {rest_velocity: 0.05}\n")
    again = run_fleet(copied, store, scheduler=cluster)
    assert (again.pilots, again.finished) == (2, 8)
    assert len(stored_pilots(FleetStore.open(store), "A1")) == 2


@pytest.mark.full
def test_a_service_parts_the_logs_of_a_robot(copied, cluster):
    text = copied.read_text().replace("    robot:", "    services: {A1: [2026-03-03]}\n    robot:")
    copied.write_text(text)
    run_fleet(copied, copied.parent / "store", scheduler=cluster)
    rows = [row for row in FleetStore.open(copied.parent / "store").answers("robots") if row["robot"] == "A1"]
    assert [(row["start"][:10], row["logs"]) for row in rows] == [("", 2), ("2026-03-03", 2)]


def test_bad_logs_are_named_and_the_rest_is_done(copied, cluster, finished):
    folder = copied.parent / "logs" / "A1"
    whole = sorted(folder.iterdir())[0].read_bytes()
    (folder / "2026-03-10.parquet").write_bytes(b"no log at all")
    (folder / "2026-03-11.parquet").write_bytes(whole[: len(whole) // 2])
    store = copied.parent / "store"
    done = run_fleet(copied, store, scheduler=cluster)
    assert {os.path.basename(uri) for uri in done.failed} == {"2026-03-10.parquet", "2026-03-11.parquet"}
    assert all("cannot be read as Parquet" in why for why in done.failed.values())
    assert largest_difference(parameters(store), parameters(finished[1])) < 1e-11
    assert run_fleet(copied, store, scheduler=cluster).finished == 0  # named once, not tried again
    assert run_fleet(copied, store, scheduler=cluster, retry=True).finished == 2


@pytest.mark.full
def test_a_robot_without_a_good_log_does_not_stop_the_others(copied, cluster):
    folder = copied.parent / "logs" / "B7"
    folder.mkdir()
    (folder / "2026-03-01.parquet").write_bytes(b"no log at all")
    done = run_fleet(copied, copied.parent / "store", scheduler=cluster)
    assert done.robots == 2
    assert [os.path.basename(os.path.dirname(uri)) for uri in done.failed] == ["B7"]


def test_a_log_that_is_cut_while_it_is_read_is_read_again(copied, cluster, monkeypatch):
    """Half a log was there when it was read, and all of it at the next run."""
    import dynident.fleet.reading as reading

    path = sorted((copied.parent / "logs" / "A1").iterdir())[-1]
    whole, original = path.read_bytes(), reading.open_log

    def cut(name, *rest, **how):
        if str(name) == str(path):
            path.write_bytes(whole[: len(whole) // 2])
        return original(name, *rest, **how)

    store = copied.parent / "store"
    with monkeypatch.context() as patch:
        patch.setattr(reading, "open_log", cut)
        done = run_fleet(copied, store, scheduler=cluster)
    assert done.failed == {}
    assert list(done.unfinished) == [str(path)]
    assert "has changed since it was listed" in done.unfinished[str(path)]
    path.write_bytes(whole)
    again = run_fleet(copied, store, scheduler=cluster)
    assert (again.finished, again.unfinished) == (1, {})


_LONG = [pytest.param(own, marks=pytest.mark.full) for own in ("logs/robot=A1", "answers/parameters", "pilots/")]


@pytest.mark.parametrize("matching", ["factors/", *_LONG])
def test_a_full_disk_loses_nothing(matching, copied, cluster, finished):
    store = copied.parent / "store"
    with full_disk((1, 3), matching) as struck:
        done = run_fleet(copied, store, scheduler=cluster)
    assert struck
    assert done.failed == {}
    assert len(done.unfinished) >= 1
    assert all("No space left on device" in why for why in done.unfinished.values())
    assert not list(store.rglob("*.part"))
    n_before = len(FleetStore.open(store).rows())
    again = run_fleet(copied, store, scheduler=cluster)
    assert (again.unfinished, again.failed) == ({}, {})
    assert again.finished == 8 - n_before  # what was finished is not repeated
    assert largest_difference(parameters(store), parameters(finished[1])) < 1e-11


@pytest.mark.full
def test_a_full_disk_while_rows_are_put_together_is_an_error_and_loses_nothing(copied, cluster, finished):
    store = copied.parent / "store"
    with full_disk((1,), "/part-"), pytest.raises(StoreError, match="No space left"):
        run_fleet(copied, store, scheduler=cluster)
    again = run_fleet(copied, store, scheduler=cluster)
    assert again.finished == 0
    assert largest_difference(parameters(store), parameters(finished[1])) < 1e-11
    assert len(list((store / "logs").rglob("*.parquet"))) == 2  # one for each robot and month


def test_a_log_with_a_payload_is_no_training_log(copied, cluster, finished):
    """The payload of loaded logs comes out, and the robot is that of the others."""
    arm = di.load_robot("pendulum-2")
    text = copied.read_text()
    chi = values_of(arm, seed=0, spread=0.02)
    loaded = chi.copy()
    body = di.Payload(0.8, (0.05, 0.0, 0.0), (0.001, 0, 0, 0.001, 0, 0.001))
    names = [column.name for column in di.columns(arm, terms="rigid,Ia,Fv,Fc(0.02),Fo")]
    for name, value in body.at(arm).items():
        loaded[names.index(name)] += value
    write_log(copied.parent / "logs" / "A1" / "2026-04-01.parquet", arm, loaded, seed=5, more={"load_kg": 0.8})
    for path in (copied.parent / "logs").rglob("2026-03*.parquet"):
        number = 100 * (path.parent.name == "A2") + int(path.name[8:10]) - 1
        own = values_of(arm, seed=int(path.parent.name[1:]) - 1, spread=0.02)
        write_log(path, arm, own, seed=number, more={"load_kg": 0.0})
    copied.write_text(text.replace("    robot:", "    from_log: {payload: load_kg}\n    robot:"))
    store = copied.parent / "store"
    run_fleet(copied, store, scheduler=cluster)
    assert largest_difference(parameters(store), parameters(finished[1])) < 1e-11
    rows = {row["date"][:10]: row for row in FleetStore.open(store).answers("payload") if row["robot"] == "A1"}
    assert rows["2026-04-01"]["payload"] == pytest.approx(0.8)
    assert abs(rows["2026-04-01"]["mass"] - 0.8) < 5.0 * rows["2026-04-01"]["std"]
    assert rows["2026-03-01"]["payload"] == 0.0
    assert abs(rows["2026-03-01"]["mass"]) < 5.0 * rows["2026-03-01"]["std"]


@pytest.mark.full
def test_held_out_logs_are_no_training_logs(copied, cluster):
    copied.write_text(copied.read_text().replace("validation: 0", "validation: 0.5"))
    store = copied.parent / "store"
    run_fleet(copied, store, scheduler=cluster)
    rows = {row["robot"]: row for row in FleetStore.open(store).answers("robots")}
    assert sum(row["held_out"] for row in rows.values()) > 0
    for row in rows.values():
        if row["held_out"]:
            assert 0.5 < row["held_out_error"] / row["training_error"] < 2.0


def test_dates_and_temperatures_come_from_columns(tmp_path, cluster):
    arm, start = di.load_robot("pendulum-2"), 1_772_352_000.0  # 2026-03-01
    for k in range(3):
        path = tmp_path / "logs" / f"A1_{k}.parquet"
        write_log(path, arm, values_of(arm), seed=k, temperature=30 + k, more={"stamp": start + 86400.0 * (2 - k)})
    (tmp_path / "f.yaml").write_text(
        "types:\n  arm:\n    robot: pendulum-2\n    logs: logs/{serial}_*.parquet\n    from_log: {date: stamp}\n"
        "pilot_s: 20\nvalidation: 0\n"
    )
    run_fleet(tmp_path / "f.yaml", tmp_path / "store", scheduler=cluster)
    rows = FleetStore.open(tmp_path / "store").rows("A1")
    assert [row["date"][:10] for row in rows] == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert [row["temperatures"][0] for row in rows] == [32.0, 31.0, 30.0]
    assert run_fleet(tmp_path / "f.yaml", tmp_path / "store", scheduler=cluster).finished == 0


def test_a_map_that_is_run_twice_leaves_one_row(finished, fleet, tmp_path):
    """As happens when a worker dies after it has written, and before it has said so."""
    _, store = finished
    shutil.copytree(store, tmp_path / "store")
    own = FleetStore.open(tmp_path / "store")
    row = own.rows("A1")[0]
    pilot = next(one for one in stored_pilots(own, "A1") if one.key == row["pilot"])
    job = MapJob(str(own.folder), pilot.folder, "arm", LogReader(), IdentifyOptions(), 1)
    from dynident.fleet.listing import LogRef

    ref = LogRef(row["uri"], row["stamp"], "A1", row["date"])
    before = len(own.rows())
    map_log(job, ref)
    map_log(job, ref)
    assert len(own.rows()) == before
    assert len(current_rows(own.rows("A1"), pilot.key)) == 4


@pytest.mark.full
def test_more_factors_of_a_log_say_the_same(copied, cluster, finished):
    copied.write_text(copied.read_text() + "segments: 3\n")
    store = copied.parent / "store"
    run_fleet(copied, store, scheduler=cluster)
    factor = di.load_information(store / FleetStore.open(store).rows()[0]["factor"])
    assert len(factor.segments) == 3
    assert largest_difference(parameters(store), parameters(finished[1])) < 1e-9


def test_a_store_is_a_folder_of_its_own(tmp_path, fleet, cluster):
    (tmp_path / "other.txt").write_text("mine")
    with pytest.raises(StoreError, match="a folder with other files"):
        run_fleet(fleet, tmp_path, scheduler=cluster)
    with pytest.raises(StoreError, match="is no store of a fleet"):
        FleetStore.open(tmp_path)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "store.json").write_text(json.dumps({"format": "dynident fleet 9"}))
    with pytest.raises(StoreError, match="expected 'dynident fleet 1'"):
        FleetStore.open(tmp_path / "s")


def test_estimators_that_need_rows_are_refused(fleet, tmp_path):
    text = fleet.read_text() + "identify: {estimator: robust}\n"
    (tmp_path / "f.yaml").write_text(text)
    with pytest.raises(di.DynidentError, match="needs the rows of all logs"):
        run_fleet(tmp_path / "f.yaml", tmp_path / "store")
