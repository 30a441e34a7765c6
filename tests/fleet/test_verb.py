"""`dynident fleet`: exit codes, JSON, pages, alarms that are raised once, models of all robots, queries of the docs."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from dynident.cli.command_line import main
from dynident.fleet.analysis import analyze_fleet
from dynident.fleet.running import run_fleet
from dynident.fleet.store import FleetStore
from dynident.fleet.watching import watch_fleet
from tests.fleet.made import START, timedelta, values_of, write_fleet, write_log

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory, cluster):
    """Five arms over twelve days; friction of the first one is twice what it was from the seventh day on."""
    import dynident as di

    folder, arm = tmp_path_factory.mktemp("fleet"), di.load_robot("pendulum-1")
    file = write_fleet(folder, robots=5, logs=12, robot="pendulum-1", seconds=6.0)
    chi = values_of(arm, friction=2.0, seed=0, spread=0.02)
    for k in range(6, 12):
        path = folder / "logs" / "A1" / f"{START + timedelta(days=k):%Y-%m-%dT%H%M%S}.parquet"
        write_log(path, arm, chi, seed=k, seconds=6.0)
    (folder / "logs" / "A2" / "2026-03-20.parquet").write_bytes(b"no log")
    run_fleet(file, folder / "store", scheduler=cluster)
    return folder / "store"


def test_report_writes_pages_and_tables(store, capsys):
    assert main(["fleet", "report", str(store), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (alarm,) = [one for one in answer["alarms"] if one["kind"] == "friction"]
    assert (alarm["robot"], alarm["element"], alarm["date"]) == ("A1", "1", "2026-03-07")
    assert answer["histories"] == 5
    page = (store / "report.html").read_text()
    assert "friction of element 1 steps by" in page
    assert "2026-03-20.parquet" in page  # the log that could not be used
    for link in re.findall(r'href="(robots/[^"]*)"', page):
        own = store / link
        assert "Identification report" in own.read_text()
        assert (own.parent / "report.html").exists()
    changes = FleetStore.open(store).answers("changes")
    assert [row["robot"] for row in changes if row["alarm"] and row["element"] != "payload"] == ["A1"]
    assert len(FleetStore.open(store).answers("shrunk")) == 5 * len(
        {row["name"] for row in FleetStore.open(store).answers("types")}
    )


def test_report_fits_a_terminal(store, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["fleet", "report", str(store)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if str(store) not in line) <= 80
    assert any("A1" in line and "friction of 1" in line for line in lines)


def test_watch_raises_an_alarm_once(store, capsys):
    (store / "alarms.json").unlink(missing_ok=True)
    assert main(["fleet", "watch", str(store)]) == 1
    alarms = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {one["robot"] for one in alarms if one["kind"] == "friction"} == {"A1"}
    assert main(["fleet", "watch", str(store)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["fleet", "watch", str(store), "--every", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["alarms"] == alarms


def test_a_webhook_gets_every_new_alarm(store):
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204 if self.path == "/alarms" else 500)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        (store / "alarms.json").unlink(missing_ok=True)
        with pytest.raises(Exception, match="does not take alarms"):
            watch_fleet(store, webhook=f"{address}/broken")
        posted.clear()
        alarms, _ = watch_fleet(store, webhook=f"{address}/alarms")  # none is lost
        assert posted == alarms
        assert alarms
    finally:
        server.shutdown()
    with pytest.raises(Exception, match="expected an address that begins with http"):
        watch_fleet(store, webhook="ftp://127.0.0.1")


def test_models_of_all_robots(store, tmp_path, capsys):
    assert main(["fleet", "export", str(store), "-o", str(tmp_path / "m"), "--formats", "yaml,c", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert sorted(answer["written"]) == ["A1", "A2", "A3", "A4", "A5"]
    assert all(Path(name).exists() for names in answer["written"].values() for name in names)
    assert main(["fleet", "export", str(store), "-o", str(tmp_path), "--robots", "A9"]) == 2
    assert "unknown robot 'A9'" in capsys.readouterr().err
    for other in ("usd", "drake", "isaaclab"):  # formats of `export` that one file for each robot is not made in
        assert main(["fleet", "export", str(store), "-o", str(tmp_path), "--formats", f"urdf,{other}"]) == 2
        assert f"unknown format '{other}'" in capsys.readouterr().err


def test_run_says_what_failed(store, capsys, monkeypatch, cluster):
    import dynident.cli.fleet as verb

    file = store.parent / "fleet.yaml"
    original = run_fleet
    monkeypatch.setattr(
        "dynident.fleet.running.run_fleet", lambda *a, **how: original(*a, **how | {"scheduler": cluster})
    )
    assert main(["fleet", "run", str(file), "-o", str(store), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["finished"], answer["known"], answer["robots"]) == (0, 61, 5)
    assert [Path(uri).name for uri in answer["failed"]] == ["2026-03-20.parquet"]
    assert main(["fleet", "run", str(file), "-o", str(store)]) == 1
    assert "failed: " in capsys.readouterr().out
    assert verb.TASKS == ("init", "run", "report", "watch", "export")


BAD = {
    "run fleet.yaml": "fleet run needs -o STORE",
    "run gone.yaml -o s": "gone.yaml: no such file; dynident fleet init FOLDER drafts one",
    "report gone": "gone: is no store of a fleet",
    "report gone --workers 2": "--workers has no meaning with fleet report",
    "report gone -o x": "-o has no meaning with fleet report",
    "init gone": "fleet init needs --robot",
    "init gone --robot pendulum-1": "gone: is no folder",
    "watch gone --false-alarms 2": "--false-alarms is 2.0",
    "export gone -o m": "gone: is no store",
    "look gone": "TASK: unknown choice 'look'",
}


@pytest.mark.parametrize("words", BAD)
def test_one_sentence_for_bad_input(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fleet", *words.split()]) == 2
    assert BAD[words] in capsys.readouterr().err


def test_init_drafts_a_file_that_is_not_replaced(store, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["fleet", "init", str(store.parent / "logs"), "--robot", "pendulum-1"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "file": "fleet.yaml",
        "logs": 61,
        "robots": ["A1", "A2", "A3", "A4", "A5"],
    }
    assert main(words) == 2
    assert "is there already" in capsys.readouterr().err


def test_covariates_are_those_asked_for(store):
    found = analyze_fleet(store, covariates="none", false_alarms=0.5)
    assert found.level == pytest.approx(0.5 / len(found.changes))


def test_queries_of_the_docs_give_an_answer(store):
    duckdb = pytest.importorskip("duckdb")
    analyze_fleet(store).save()
    page = (ROOT / "docs" / "reference" / "fleet.md").read_text()
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert len(queries) >= 3
    for query in queries:
        assert duckdb.sql(query.replace("store/", f"{store}/")).fetchall(), query
