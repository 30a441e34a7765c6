from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
import pickle

import numpy as np
import pytest

import dynident as di
from dynident.information.accumulation import MOST_SEGMENTS
from tests.robots import random_urdf

ARMS = ["puma560", "sr400", "tx40", "cylindrical", "minnesota"]


def data(robot, n=3000, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.normal(size=(3, n, len(robot.joint_names)))
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    return q, dq, ddq, tau + rng.normal(size=tau.shape) * noise


def lstsq(robot, q, dq, ddq, tau, terms=None):
    base = di.base_parameters(robot, terms)
    fixed = dict(robot.fixed)
    right = tau - di.inverse_dynamics(robot, q, dq, ddq, values=fixed) if fixed else tau
    W = np.ascontiguousarray(base.regressor(q, dq, ddq)).reshape(-1, base.n)
    return np.linalg.lstsq(W, right.ravel(), rcond=None)[0]


@pytest.mark.parametrize("name", ARMS)
def test_equals_lstsq_on_the_full_matrix(name):
    robot = di.load_robot(name)
    samples = data(robot)
    solution = di.accumulate(robot, *samples).solve(weighting="equal")
    reference = lstsq(robot, *samples)
    np.testing.assert_allclose(solution.values, reference, atol=1e-9 * np.abs(reference).max())
    assert solution.names == di.base_parameters(robot).names


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_work_alike(seed):
    robot = di.robot.robot_from_urdf(random_urdf(200 + seed, tree=True))
    samples = data(robot, 800, seed)
    solution = di.accumulate(robot, *samples).solve(weighting="equal")
    np.testing.assert_allclose(solution.values, lstsq(robot, *samples), atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 191, 192, 193, 385, 600])
def test_no_sample_is_lost_at_the_end_of_a_block(n):
    robot = di.load_robot("cmu-dd-arm-3")
    q, dq, ddq, tau = data(robot, n)
    info = di.accumulate(robot, q, dq, ddq, tau, "rigid")
    W = di.base_parameters(robot, "rigid").regressor(q, dq, ddq)
    assert info.n_rows == 3 * n
    for channel, factor in enumerate(info.channel_factors()):
        rows = np.column_stack([W[:, channel, factor.columns], tau[:, channel]])
        np.testing.assert_allclose(factor.R.T @ factor.R, rows.T @ rows, atol=1e-10 * np.abs(rows).max() ** 2 * n)


def test_every_length_from_1_to_600():
    robot = di.load_robot("pendulum-2")
    q, dq, ddq, tau = data(robot, 600)
    W = di.base_parameters(robot).regressor(q, dq, ddq)
    for n in range(1, 601):
        factors = di.accumulate(robot, q[:n], dq[:n], ddq[:n], tau[:n]).channel_factors()
        for channel, factor in enumerate(factors):
            rows = np.column_stack([W[:n, channel, factor.columns], tau[:n, channel]])
            gram = rows.T @ rows
            np.testing.assert_allclose(factor.R.T @ factor.R, gram, atol=1e-12 * np.abs(gram).max())


def test_strided_and_single_precision_input():
    robot = di.load_robot("puma560")
    samples = data(robot, 500)
    reference = di.accumulate(robot, *samples).solve().values
    wide = [np.asfortranarray(np.repeat(x, 2, axis=0))[::2] for x in samples]
    np.testing.assert_array_equal(di.accumulate(robot, *wide).solve().values, reference)
    reversed_time = [x[::-1] for x in samples]
    np.testing.assert_allclose(di.accumulate(robot, *reversed_time).solve().values, reference, atol=1e-10)
    single = [x.astype(np.float32) for x in samples]
    np.testing.assert_allclose(di.accumulate(robot, *single).solve().values, reference, atol=1e-2)


class TestMerging:
    def solutions_agree(self, a, b):
        np.testing.assert_allclose(a.solve().values, b.solve().values, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(a.solve().std, b.solve().std, rtol=1e-9)

    @pytest.mark.parametrize("cuts", [[1000], [1, 2, 3], [500, 501, 2500], list(range(100, 3000, 290))])
    def test_any_split_in_any_order(self, cuts):
        robot = di.load_robot("puma560")
        samples = data(robot)
        whole = di.accumulate(robot, *samples)
        edges = [0, *cuts, 3000]
        parts = [di.accumulate(robot, *(x[a:b] for x in samples)) for a, b in itertools.pairwise(edges)]
        rng = np.random.default_rng(len(cuts))
        order = rng.permutation(len(parts))
        merged = parts[order[0]]
        for i in order[1:]:
            merged = merged + parts[i]
        self.solutions_agree(merged, whole)
        assert merged.n_rows == whole.n_rows
        assert len(merged.segments) == len(parts)
        self.solutions_agree(merged.joined(), whole)

    def test_threads_and_segments_do_not_matter(self):
        robot = di.load_robot("cmu-dd-arm-3")
        samples = data(robot, 40_000)
        one = di.accumulate(robot, *samples, threads=1, segment=40_000)
        many = di.accumulate(robot, *samples, threads=4, segment=1000)
        assert (len(one.segments), len(many.segments)) == (1, 40)
        self.solutions_agree(one, many)

    def test_two_processes(self, tmp_path):
        robot = di.load_robot("puma560")
        samples = data(robot)
        half = [[x[:1500] for x in samples], [x[1500:] for x in samples]]
        context = multiprocessing.get_context("spawn")
        paths = [str(tmp_path / f"{i}.npz") for i in range(2)]
        with context.Pool(2) as pool:
            pool.starmap(_in_process, [(pickle.dumps(half[i]), paths[i]) for i in range(2)])
        merged = di.load_information(paths[0]) + di.load_information(paths[1])
        self.solutions_agree(merged, di.accumulate(robot, *samples))

    def test_a_locked_run_completes_a_full_one(self):
        """The locked run has fewer base parameters, all of them combinations of the full robot's."""
        robot = di.load_robot("ur10e")
        held = robot.lock(q4=0.3, q5=-0.4, q6=0.1)
        full, part = data(robot, 400), data(held, 300, 1)
        merged = di.accumulate(robot, *full) + di.accumulate(held, *part)
        assert merged.names == di.base_parameters(robot).names
        assert merged.channels == robot.joint_names
        base = di.base_parameters(robot)
        W = [np.ascontiguousarray(base.regressor(*full[:3])).reshape(-1, base.n)]
        whole = [np.insert(np.insert(np.insert(x, 3, 0, 1), 4, 0, 1), 5, 0, 1) for x in part[:3]]
        whole[0][:, 3:] = [0.3, -0.4, 0.1]
        W.append(np.ascontiguousarray(base.regressor(*whole)[:, :3]).reshape(-1, base.n))
        right = np.concatenate([full[3].ravel(), part[3].ravel()])
        reference = np.linalg.lstsq(np.vstack(W), right, rcond=None)[0]
        np.testing.assert_allclose(merged.solve(weighting="equal").values, reference, atol=1e-8)

    def test_loaded_and_unloaded_runs_merge_by_name(self):
        """A load on the last link: its ten columns exist in the loaded run only and become identifiable together."""
        robot = di.load_robot("cmu-dd-arm-6")
        rng = np.random.default_rng(5)
        load = {"XX": 0.02, "XY": 0.001, "XZ": 0.002, "YY": 0.03, "YZ": -0.001, "ZZ": 0.01}
        load |= {"MX": 0.05, "MY": -0.02, "MZ": 0.1, "M": 1.5}
        q, dq, ddq, tau = data(robot, 1500, noise=0.0)
        columns = [column.name for column in di.columns(robot, "rigid")]
        W = di.regressor(robot, q, dq, ddq, "rigid")
        extra = {f"{symbol}L": W[:, :, columns.index(f"{symbol}6")] for symbol in load}
        loaded_tau = tau + sum(value * extra[f"{symbol}L"] for symbol, value in load.items())
        noise = rng.normal(size=(2, *tau.shape)) * 1e-6
        unloaded = di.accumulate(robot, q, dq, ddq, tau + noise[0])
        loaded = di.accumulate(robot, q, dq, ddq, loaded_tau + noise[1], extra=extra)
        alone = loaded.solve()
        assert alone.rank < len(alone.names)  # on its own it cannot distinguish the load from the link
        together = (unloaded + loaded).solve()
        assert {"ML", "MZL", "ZZL"} <= set(together.names)
        base = di.base_parameters(robot)
        for symbol in ("M", "MX", "MY", "MZ", "ZZ", "XY", "XZ", "YZ"):
            assert together[f"{symbol}L"] == pytest.approx(load[symbol], abs=1e-4), symbol
        values = dict(zip(together.names, together.values, strict=True))
        for name, value in zip(base.names, base.base_values(), strict=True):
            assert values[name] == pytest.approx(value, abs=1e-3), name

    def test_conflicting_definitions_are_refused(self):
        robot = di.load_robot("puma560")
        samples = data(robot, 50)
        plain = di.accumulate(robot, *samples)
        smooth = di.accumulate(robot, *samples, ["rigid", "Ia", "Fv", di.dynamics.Coulomb(0.1), "Fo"])
        with pytest.raises(di.information.MergeError, match="column Fc1 means different things"):
            _ = plain + smooth
        other = di.load_robot("ur10e")
        with pytest.raises(di.information.MergeError, match="column XX1 means different things"):
            _ = plain + di.accumulate(other, *data(other, 50))

    def test_columns_that_one_side_lacks_are_zero_there(self):
        """Without rotors in one run, rotor inertia can be distinguished from link inertia by comparing the two."""
        robot = di.load_robot("puma560")
        samples = data(robot, 500)
        merged = di.accumulate(robot, *samples, "rigid") + di.accumulate(robot, *samples)
        assert set(merged.names) - set(di.base_parameters(robot).names) == {"Ia1", "Ia2"}


def _in_process(pickled, path):
    robot = di.load_robot("puma560")
    di.accumulate(robot, *pickle.loads(pickled)).save(path)


class TestCoordinates:
    def test_known_values_move_to_the_right_hand_side(self):
        robot = di.load_robot("puma560")
        samples = data(robot, 800, noise=0.0)
        values = robot.value_set()
        known = {name: values.get(name, 0.0) for name in ("ZZ1", "M6", "MZ6", "XX3", "Ia4", "Fv2")}
        info = di.accumulate(robot, *samples).known(known)
        assert not set(known) & {column.name for column in info.coordinates.columns}
        solution = info.solve()
        truth = info.coordinates.K @ np.array([values.get(c.name, 0.0) for c in info.coordinates.columns])
        np.testing.assert_allclose(solution.values, truth, atol=1e-9)

    def test_fixed_values_of_the_robot_are_subtracted(self):
        robot = di.load_robot("puma560")
        samples = data(robot, 400, noise=0.0)
        declared = dataclasses.replace(robot, fixed={"ZZ3": robot.value_set()["ZZ3"], "Fv2": robot.value_set()["Fv2"]})
        for extra in (None, {"nothing": np.zeros((400, 6))}):
            solution = di.accumulate(declared, *samples, extra=extra).solve()
            base = di.base_parameters(declared)
            np.testing.assert_allclose(solution.values[: base.n], base.base_values(), atol=1e-9)

    def test_restriction_is_the_fit_with_the_others_at_zero(self):
        robot = di.load_robot("cmu-dd-arm-3")
        samples = data(robot, 300)
        base = di.base_parameters(robot)
        kept = [name for name in base.names if name not in ("XY3", "Fo2")]
        solution = di.accumulate(robot, *samples).restrict(kept).solve(weighting="equal")
        W = base.regressor(*samples[:3]).reshape(-1, base.n)[:, [base.names.index(name) for name in kept]]
        reference = np.linalg.lstsq(W, samples[3].ravel(), rcond=None)[0]
        np.testing.assert_allclose(solution.values, reference, atol=1e-10)
        assert solution.names == tuple(kept)

    def test_standard_columns_and_standard_rows(self):
        robot = di.load_robot("cmu-dd-arm-3")
        samples = data(robot, 300)
        base = di.accumulate(robot, *samples, "rigid")
        standard = di.accumulate(robot, *samples, "rigid", columns="standard")
        assert standard.solve().rank == base.solve().rank == 11
        assert len(standard.names) == 17  # the 30 without the 13 that have no effect
        present = [*standard.coordinates.independent, 30]
        for rows, factor in zip(base.standard_rows(), standard.channel_factors(), strict=True):
            full = factor.dense(17)
            np.testing.assert_allclose((rows.T @ rows)[np.ix_(present, present)], full.T @ full, atol=1e-7)

    @pytest.mark.parametrize("name", ["ur10e", "panda", "sr400"])
    def test_standard_columns_do_not_invent_rank(self, name):
        robot = di.load_robot(name)
        solution = di.accumulate(robot, *data(robot, 500), columns="standard").solve()
        assert solution.rank == di.base_parameters(robot).n
        assert np.abs(solution.values).max() < 1e3

    def test_transformation(self):
        robot = di.load_robot("kr5-planar")
        info = di.accumulate(robot, *data(robot, 200), "rigid")
        T = np.random.default_rng(0).normal(size=(9, 9))
        changed = info.transformed(T, [f"c{i}" for i in range(9)])
        np.testing.assert_allclose(T @ changed.solve().values, info.solve().values, atol=1e-9)

    def test_forgetting_weights_and_outputs(self):
        robot = di.load_robot("kr5-planar")
        old, new = (di.accumulate(robot, *data(robot, 200, seed), "rigid") for seed in (1, 2))
        a, b = data(robot, 200, 1), data(robot, 200, 2)
        base = di.base_parameters(robot, "rigid")
        W = [base.regressor(*x[:3]).reshape(-1, 9) for x in (a, b)]
        root = np.sqrt(0.3)
        reference = np.linalg.lstsq(
            np.vstack([root * W[0], W[1]]), np.concatenate([root * a[3].ravel(), b[3].ravel()]), rcond=None
        )[0]
        solution = (old.forget(0.3) + new).solve(weighting="equal")
        np.testing.assert_allclose(solution.values, reference, atol=1e-10)
        assert solution.n_rows == pytest.approx(0.3 * 600 + 600)
        last = new.outputs(["joint5"]).solve()
        assert last.solve.channels == ("joint5",)
        assert new.outputs("joint5").solve().solve.channels == ("joint5",)
        with pytest.raises(di.InputError, match="no output channel is left; expected some of joint2"):
            new.outputs([])
        assert last.rank == 3  # the last torque of a planar arm feels its own link only
        heavy = new.weighted({"joint2": 0.0, "joint3": 0.0}).solve(weighting="equal")
        assert heavy.rank == last.rank

    def test_rows_can_be_weighted(self):
        robot = di.load_robot("kr5-planar")
        q, dq, ddq, tau = data(robot, 200)
        weights = np.random.default_rng(0).uniform(0, 2, (200, 3))
        base = di.base_parameters(robot, "rigid")
        root = np.sqrt(weights)
        W = (base.regressor(q, dq, ddq) * root[:, :, None]).reshape(-1, 9)
        reference = np.linalg.lstsq(W, (tau * root).ravel(), rcond=None)[0]
        for extra in (None, {"nothing": np.zeros((200, 3))}):
            info = di.accumulate(robot, q, dq, ddq, tau, "rigid", weights=weights, extra=extra)
            solution = info.solve(weighting="equal")
            np.testing.assert_allclose(solution.values[:9], reference, atol=1e-9)
        once = di.accumulate(robot, q, dq, ddq, tau, "rigid", weights=weights[:, 0])
        assert once.n_rows == 600

    def test_cross_validation_needs_no_second_pass(self):
        robot = di.load_robot("kr5-planar")
        samples = data(robot, 1000)
        info = di.accumulate(robot, *samples, "rigid", segment=250)
        left_out = info.without([2]).solve(weighting="equal")
        kept = np.r_[0:500, 750:1000]
        direct = di.accumulate(robot, *(x[kept] for x in samples), "rigid").solve(weighting="equal")
        np.testing.assert_allclose(left_out.values, direct.values, atol=1e-10)
        assert info.select([2]).n_rows == 750


class TestBadNumbers:
    @pytest.mark.parametrize("which", range(4))
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_sample_and_channel_are_named(self, which, bad):
        robot = di.load_robot("puma560")
        samples = list(data(robot, 700))
        samples[which] = samples[which].copy()
        samples[which][431, 4] = bad
        name = ("q", "dq", "ddq", "tau")[which]
        with pytest.raises(di.InputError, match=f"^{name} is {bad} at sample 431, channel joint5"):
            di.accumulate(robot, *samples)
        blocks = [[x[:400] for x in samples], [x[400:] for x in samples]]
        with pytest.raises(di.InputError, match=f"{name} is {bad} at sample 431, channel joint5"):
            di.information.accumulate_blocks(robot, blocks)

    def test_earlier_information_stays_as_it_was(self):
        robot = di.load_robot("puma560")
        samples = data(robot, 300)
        info = di.accumulate(robot, *samples)
        before = info.solve().values.copy()
        wrong = [x.copy() for x in samples]
        wrong[3][10, 0] = np.nan
        with pytest.raises(di.InputError):
            _ = info + di.accumulate(robot, *wrong)
        np.testing.assert_array_equal(info.solve().values, before)
        for n in (1, 2, 3, 5):
            assert di.accumulate(robot, *(x[:n] for x in samples), threads=1).n_rows == 6 * n

    def test_a_bad_given_column_or_weight_is_named(self):
        robot = di.load_robot("kr5-planar")
        samples = data(robot, 20)
        extra = np.zeros((20, 3))
        extra[7, 1] = np.nan
        with pytest.raises(di.InputError, match="extra column ripple is nan at sample 7, column joint3"):
            di.accumulate(robot, *samples, extra={"ripple": extra})
        with pytest.raises(di.InputError, match="has the name of a column of the model"):
            di.accumulate(robot, *samples, extra={"ZZ1": np.zeros((20, 3))})
        with pytest.raises(di.InputError, match="weight of sample 3, channel joint2 is negative"):
            di.accumulate(robot, *samples, weights=np.where(np.arange(20) == 3, -1.0, 1.0))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda s: [s[0][:, :2], *s[1:]], r"q must have shape \(n_samples, 3\)"),
            (lambda s: [*s[:3], s[3][:10]], "tau must have 20 samples as q has; got 10"),
            (lambda s: [x[:0] for x in s], "no samples"),
            (lambda s: [[["a"] * 3] * 20, *s[1:]], "q must be an array of numbers"),
        ],
    )
    def test_wrong_shapes_are_named(self, change, words):
        robot = di.load_robot("kr5-planar")
        with pytest.raises(di.InputError, match=words):
            di.accumulate(robot, *change(list(data(robot, 20))))


class TestBlocksAndParquet:
    def test_blocks_of_any_size_and_many_of_them(self):
        robot = di.load_robot("kr5-planar")
        samples = data(robot, 5000)
        whole = di.accumulate(robot, *samples).solve()
        sizes = np.random.default_rng(0).integers(0, 40, 400)
        edges = np.minimum(np.concatenate([[0], np.cumsum(sizes), [5000]]), 5000)
        seen = []
        info = di.information.accumulate_blocks(
            robot,
            ([x[a:b] for x in samples] for a, b in itertools.pairwise(edges)),
            progress=lambda done, total: seen.append((done, total)),
            total=5000,
        )
        np.testing.assert_allclose(info.solve().values, whole.values, atol=1e-10)
        assert len(info.segments) <= MOST_SEGMENTS
        assert seen[-1] == (5000, 5000)
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)

    def parquet(self, tmp_path, robot, samples, **options):
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = [f"{kind}{i + 1}" for kind in ("q", "dq", "ddq", "tau") for i in range(samples[0].shape[1])]
        table = pa.table(dict(zip(names, np.concatenate(samples, axis=1).T, strict=True)))
        table = table.append_column("comment", pa.array(["x"] * len(samples[0])))
        path = tmp_path / "log.parquet"
        pq.write_table(table, path, **options)
        return path

    @pytest.mark.parametrize("options", [{}, {"compression": "none", "row_group_size": 700}])
    def test_parquet_gives_what_arrays_give(self, tmp_path, options):
        robot = di.load_robot("kr5-planar")
        samples = data(robot, 3000)
        path = self.parquet(tmp_path, robot, samples, **options)
        info = di.information.accumulate_parquet(robot, path)
        np.testing.assert_allclose(info.solve().values, di.accumulate(robot, *samples).solve().values, atol=1e-10)
        assert info.segments[0].label == str(path)

    def test_bad_parquet_is_named(self, tmp_path):
        robot = di.load_robot("kr5-planar")
        samples = list(data(robot, 100))
        with pytest.raises(di.LogError, match=r"none\.parquet: no such file"):
            di.information.accumulate_parquet(robot, tmp_path / "none.parquet")
        (tmp_path / "text.parquet").write_text("q1,q2")
        with pytest.raises(di.LogError, match=r"text\.parquet: cannot be read as Parquet"):
            di.information.accumulate_parquet(robot, tmp_path / "text.parquet")
        samples[3][50, 2] = np.nan
        path = self.parquet(tmp_path, robot, samples)
        with pytest.raises(di.InputError, match=r"log\.parquet: tau is nan at sample 50, channel joint5"):
            di.information.accumulate_parquet(robot, path)
        with pytest.raises(di.InputError, match=r"log\.parquet: has no numeric column 'q4'"):
            di.information.accumulate_parquet(di.load_robot("puma560"), path)


def test_progress_and_labels():
    robot = di.load_robot("kr5-planar")
    seen = []
    info = di.accumulate(
        robot, *data(robot, 1000), segment=300, label="run 7", progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(300, 1000), (600, 1000), (900, 1000), (1000, 1000)]
    assert {segment.label for segment in info.segments} == {"run 7"}
