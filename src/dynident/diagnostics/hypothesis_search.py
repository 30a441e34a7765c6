"""Which mistakes explain logs better than their columns as named: the best one, then the best beside it, and so on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, Mask
from dynident.diagnostics.hypotheses import Hypothesis, Wiring
from dynident.diagnostics.links import compare_with_links
from dynident.diagnostics.thresholds import THRESHOLDS
from dynident.diagnostics.trial import MIN_SAMPLES, HeldOut, Trial, TrialFit, TrialRows, TrialSamples
from dynident.errors import InputError, SingularError
from dynident.estimate.records import percent
from dynident.identifiability.base import base_parameters
from dynident.information.factor import Factor
from dynident.robot.model import Robot

_MOST_MISTAKES = 4  # that are looked for one beside the other
_PART = 3  # one of so many samples rules out most hypotheses
_TURNS = 4  # how often each part that is held out comes along a log, where logs are compared
_FEW_JOINTS = 2  # that a mistake is about: of more, all torque together is evaluated
_N_REFINED = 3  # mistakes with a number that are looked at closely
_REACH, _N_STEPS = 0.5, 3  # of a logarithm: how far around a number a better one is looked for, and how often
Tried = tuple[Hypothesis, tuple[int, ...], TrialFit]  # a mistake, the logs it happened to, and the fit with it


@dataclass(frozen=True, eq=False)
class Mistake:
    """A mistake that the model prefers.

    Attributes:
        hypothesis: What happened.
        logs: Numbers of the logs it happened to.
        before: The fit without it.
        after: The fit with it.
        rivals: Hypotheses that are about as good, in words.
        held_out: What it leaves of parts of the logs that were held out of the fit.
        driven: Whether friction that drives would explain as much as the mistake does.
    """

    hypothesis: Hypothesis
    logs: tuple[int, ...]
    before: TrialFit
    after: TrialFit
    rivals: tuple[str, ...]
    held_out: HeldOut | None = None
    driven: bool = False

    @property
    def gain(self) -> float:
        """By how much the score falls."""
        return self.before.score - self.after.score


class HypothesisSearch:
    """The search for mistakes in some logs of a robot.

    Attributes:
        mistakes: In the order in which they were found.
        meanings: What the channels of each log mean, all mistakes together.
        fit: Of one model to all logs with these meanings.
        doubt: Why mistakes that would explain more are not believed; empty where they are, or where there are none.
        suspects: Mistakes that would explain more, but are not believed.
        driving: Joints whose friction drives; none where friction dissipates.
        either: A wrong sign that would explain that as well, in words, where the robot file has no masses to tell.
        disagreement: For each log by how much one model of all logs fits it worse than a model of its own.
    """

    fit: TrialFit

    def __init__(
        self, trial: Trial, samples: Sequence[TrialSamples], wirings: Sequence[Wiring], *, few: bool = False
    ) -> None:
        self._trial, self._samples, self._wirings = trial, samples, wirings
        self._as_described, self._few = trial, few
        self._factors: dict[tuple[int, int, bytes, float, bool], tuple[Factor, ...]] = {}
        self.mistakes: list[Mistake] = []
        self.meanings = [Hypothesis.as_logged(len(trial.robot.joint_names)) for _ in samples]
        self.disagreement: tuple[float, ...] = ()
        self.doubt, self.suspects = "", list[Mistake]()
        self.driving: tuple[int, ...] = ()
        self.either: str | None = None
        self._dissipates = True

    def run(self) -> HypothesisSearch:
        """Correct one mistake after the other, as long as that explains the torque much better."""
        self.fit = self._fit(self.meanings)
        best = self._best()
        if turned := self._turned_gravity(best):
            self.mistakes.append(turned)
            self.fit, best = turned.after, self._best()
        while len(self.mistakes) < _MOST_MISTAKES and best and (found := self._confirm(best)):
            if found.driven and not (self._masses_agree(found) or self._drives_alone(found)):
                self._let_friction_drive(found)
            else:
                self.mistakes.append(found)
                self.meanings = self._with(found.hypothesis, found.logs)
                self.fit = found.after
            best = self._best() if len(self.mistakes) < _MOST_MISTAKES else None
        if doubt := self._doubt():
            self.withdraw(doubt)
        self.disagreement = self._disagreement(self.meanings)
        return self

    def withdraw(self, doubt: str) -> None:
        """Believe none of the mistakes, for a reason."""
        self.doubt, self.suspects, self.mistakes = doubt, self.mistakes, []
        self.meanings = [Hypothesis.as_logged(len(meaning.torques)) for meaning in self.meanings]
        self._trial = self._as_described
        self._factors.clear()
        self.fit = self._fit(self.meanings)

    def _doubt(self) -> str:
        """Why the mistakes found are no answer: with them, what was held out of the fit is not well explained."""
        named = [one for one in self.mistakes if one.held_out is not None]
        if not named:
            return ""
        last = named[-1].held_out
        assert last is not None
        if last.total_share > THRESHOLDS.poor_residual_share:
            return f"{percent(last.total_share)} of the torque would stay unexplained"
        evaluated = last.n_samples >= MIN_SAMPLES
        for one in named:
            about = one.hypothesis.changed & evaluated
            if one.hypothesis.item in ("sign", "units", "scale", "order") and about.sum() <= _FEW_JOINTS:
                # Of two joints, one may be too weak for any model.
                least = float(last.residual_share[about].min(initial=np.inf))
                if about.any() and least > THRESHOLDS.named_residual_share:
                    joint = int(np.argmin(np.where(about, last.residual_share, np.inf)))
                    return f"{percent(least)} of the torque of joint {self.joint_names[joint]} would stay unexplained"
        if any(one.hypothesis.item == "clock" for one in named) and (odd := self._contradicting_joint(last)):
            return f"torque of joint {odd} follows its own motion, but not with the parameters of the other joints"
        moved = [one for one in named if not np.array_equal(one.hypothesis.positions, np.eye(len(evaluated)))]
        beyond = self._beyond_limits(self.meanings)
        if moved and beyond.any():
            return f"joint {self.joint_names[int(np.argmax(beyond))]} would be beyond its limits"
        return ""

    def _contradicting_joint(self, held_out: HeldOut) -> str:
        """A joint that its own equations explain, and one model of all joints does not; empty without any.

        A clock sets inertia against weight, and so do lengths of links: those of another robot ask for a clock, and
        leave joints that contradict each other with any.
        """
        own = self._trial.bound([self._rows(log, meaning) for log, meaning in enumerate(self.meanings)])
        explained = (own.n_samples >= MIN_SAMPLES) & (own.residual_share < THRESHOLDS.named_residual_share)
        share = np.where(explained, held_out.residual_share, 0.0)
        return self.joint_names[int(np.argmax(share))] if share.max() > THRESHOLDS.named_residual_share else ""

    def _beyond_limits(self, meanings: Sequence[Hypothesis]) -> Mask:
        """(n_joints,), whether positions, if columns mean this, are ones that no joint of this robot can have."""
        own = zip(meanings, self._samples, self._wirings, strict=True)
        q = np.concatenate([meaning.read(samples, wiring).q for meaning, samples, wiring in own])
        low, high = np.array([joint.limits.span for joint in self.robot.moving_joints]).T
        room = THRESHOLDS.position_limit_margin_rad * self.robot.radians
        return np.asarray((low < high) & ((q.min(axis=0) < low - room) | (q.max(axis=0) > high + room)))

    def _leaves_limits(self, what: Hypothesis, logs: tuple[int, ...]) -> bool:
        """Whether a mistake would put joints beyond their limits that keep to them without it."""
        if np.array_equal(what.positions, np.eye(len(what.positions))):
            return False
        return bool((self._beyond_limits(self._with(what, logs)) & ~self._beyond_limits(self.meanings)).any())

    def _masses_agree(self, found: Mistake) -> bool:
        """Whether the masses of the robot file side with a mistake that friction alone speaks for."""
        links = self._links_with(found)
        return links is not None and float(np.median(links)) > 0.0

    def _drives_alone(self, found: Mistake) -> bool:
        """Whether the only joints whose friction would drive are those of a mistake, and dry friction among it does.

        Drives compensate friction at all joints, and no joint could stand still whose dry friction is compensated
        more than in full.
        """
        rows = [self._rows(log, meaning) for log, meaning in enumerate(self.meanings)]
        free = self._trial.fit(rows, dissipates=False)
        about = set(np.flatnonzero(found.hypothesis.changed).tolist())
        # Friction near zero is on either side of it by chance; friction that drives is missed where it may not.
        cost = np.log(self.fit.residual_share / free.residual_share)
        driven = set(np.flatnonzero(cost > THRESHOLDS.max_joint_loss).tolist())
        return driven == about <= set(self._trial.driving_joints(free, ("Fc",))) and len(about) < len(self.joint_names)

    def _links_with(self, found: Mistake) -> Array | None:
        """Correlations with the file's links of the joints that a mistake changes, where they are clear."""
        own = zip(self._with(found.hypothesis, found.logs), self._samples, self._wirings, strict=True)
        read = [meaning.read(samples, wiring) for meaning, samples, wiring in own]
        links = compare_with_links(read, self.meant_robot)
        if links is None or found.hypothesis.item != "sign":
            return None
        clear = links.clear & found.hypothesis.changed
        return links.correlations[clear] if clear.any() else None

    def _let_friction_drive(self, found: Mistake) -> None:
        """Go on with friction that need not dissipate."""
        self._dissipates = False
        if found.hypothesis.item == "sign" and self._links_with(found) is None:
            self.either = found.hypothesis.words
        self.fit = self._fit(self.meanings)
        self.driving = self._trial.driving_joints(self.fit)

    def corrected_samples(self) -> list[TrialSamples]:
        """The samples of the logs as they are meant."""
        own = zip(self.meanings, self._samples, self._wirings, strict=True)
        return [meaning.read(samples, wiring) for meaning, samples, wiring in own]

    def reverse_torques(self) -> Hypothesis:
        """Turn the sign of all torques, for a reason that the search does not look at."""
        n = len(self.meanings[0].torques)
        reverse = Hypothesis(np.eye(n), -np.eye(n))
        self.meanings = [meaning.then(reverse) for meaning in self.meanings]
        return reverse

    def _turned_gravity(self, rival: Mistake | None) -> Mistake | None:
        """A robot on a wall: gravity along another axis of the base, where that explains more than any column does.

        Other gravity is another set of equations, so it is tried only where a strong joint is badly explained.
        """
        trial, before = self._trial, self.fit
        size = float(np.linalg.norm(trial.robot.gravity))
        torque = before.residual_rms / before.residual_share
        strong = torque > THRESHOLDS.strong_torque_share * torque.max()
        if size == 0.0 or before.residual_share[strong].max() < THRESHOLDS.turned_residual_share:
            return None
        found: list[tuple[Hypothesis, TrialFit, Trial]] = []
        for axis, sign in itertools.product(range(3), (1.0, -1.0)):
            gravity = size * sign * np.eye(3)[axis]
            if abs(gravity @ trial.robot.gravity) > 0.9 * size**2:
                continue
            self._trial = Trial(base_parameters(replace(trial.robot, gravity=gravity), trial.base.terms))
            self._factors.clear()
            what = replace(
                Hypothesis.as_logged(len(torque)),
                item="gravity",
                words=f"gravity points along {'+' if sign > 0.0 else '-'}{'xyz'[axis]} of the base",
                gravity=tuple(float(x) + 0.0 for x in gravity),
            )
            found.append((what, self._fit(self.meanings), self._trial))
        self._factors.clear()
        what, after, turned = min(found, key=lambda tried: tried[1].score)
        alike = [tried for tried in found if tried[1].score < after.score + THRESHOLDS.rival_score]
        likeness = {id(tried[2]): _likeness_to_links(self._samples, tried[2].robot) for tried in alike}
        what, after, turned = max(alike, key=lambda tried: likeness[id(tried[2])])
        leads = rival is None or after.score < rival.after.score + THRESHOLDS.gravity_score_lead
        # Base parameters take up much of a wrong gravity; the masses of the robot file do not.
        sure = likeness[id(turned)] > _likeness_to_links(self._samples, trial.robot) + THRESHOLDS.min_likeness_gain
        gain = THRESHOLDS.min_score_gain if sure else THRESHOLDS.sure_score_gain
        better = leads and _explains_more(before, after, what, gain)
        self._trial = turned if better else trial
        return Mistake(what, tuple(range(len(self.meanings))), before, after, ()) if better else None

    @property
    def trial(self) -> Trial:
        """The equations of the robot as its file says."""
        return self._as_described

    @property
    def robot(self) -> Robot:
        """The robot as its file says."""
        return self._as_described.robot

    @property
    def meant_robot(self) -> Robot:
        """The robot with gravity as the mistakes found so far say."""
        turned = self._trial.robot
        return replace(turned, gravity=-turned.gravity) if self.meanings[0].upside_down else turned

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the robot's joints."""
        return self.robot.joint_names

    def odd_log(self) -> int:
        """The log without which the others agree best."""
        logs = range(len(self.meanings))
        if len(self.meanings) == 2:
            return int(np.argmax(self._disagreement(self.meanings)))
        without = []
        for odd in logs:
            rest = [self._rows(log, self.meanings[log]) for log in logs if log != odd]
            without.append(self._trial.fit(rest, dissipates=self._dissipates).score)
        return int(np.argmin(without))

    def shared_and_own_fit(self, log: int, meanings: Sequence[Hypothesis] | None = None) -> tuple[TrialFit, TrialFit]:
        """What one model of all logs leaves of a log, and what a model of its own leaves."""
        meanings = meanings or self.meanings
        own = [self._rows(log, meanings[log])]
        return self._trial.evaluate(self._fit(meanings).values, own), self._trial.fit(own, dissipates=self._dissipates)

    def _folds(self, meanings: Sequence[Hypothesis], turns: int = 1) -> list[list[TrialRows]]:
        """The equations of the parts of the logs that leave each other out, if columns mean this."""
        folds: list[list[TrialRows]] = []
        for samples, meaning, wiring in zip(self._samples, meanings, self._wirings, strict=True):
            maps = wiring.at_joints(meaning.positions), wiring.zero, meaning.clock, meaning.upside_down
            own = [self._trial.compress(part, *maps) for part in samples.folds(turns)]
            folds = folds or [[] for _ in own]
            for fold, factors in zip(folds, own, strict=True):
                fold.append((factors, wiring.at_rows(meaning.torques)))
        return folds

    def held_out_shared_and_own(self, log: int) -> tuple[TrialFit, TrialFit]:
        """What models of parts of a log leave of the parts they have not seen, with the other logs and without them."""
        others = [self._rows(other, meaning) for other, meaning in enumerate(self.meanings) if other != log]
        own = [[fold[log]] for fold in self._folds(self.meanings, _TURNS)]
        shared = self._trial.held_out(own, beside=others, dissipates=self._dissipates)
        return shared, self._trial.held_out(own, dissipates=self._dissipates)

    def _best(self) -> Mistake | None:
        """The mistake that explains most, if it explains enough."""
        before, tried, waiting = self.fit, list[Tried](), []
        for what, logs in self._candidates():
            if not self._closes_loops(what, logs):
                continue
            gain = (0.5 if what.free else 1.0) * THRESHOLDS.min_score_gain
            if self._may_explain(before, what, logs, gain):
                # Most candidates go by what their joints leave alone, which no fit of all joints goes below.
                rows = [self._rows(log, meaning) for log, meaning in enumerate(self._with(what, logs))]
                least = self._trial.bound(rows)
                if _explains_more(before, least, what, gain) and not self._leaves_limits(what, logs):
                    waiting.append((least.score, what, logs, gain, rows))
        waiting.sort(key=lambda one: one[0])
        lowest, refined_scores = np.inf, list[float]()
        for least_score, what, logs, gain, rows in waiting:
            if least_score > (_last(refined_scores) if what.free else lowest + THRESHOLDS.rival_score):
                continue  # neither the best nor its rival nor refined
            after = self._trial.fit(rows, dissipates=self._dissipates)
            if _explains_more(before, after, what, gain):
                tried.append((what, logs, after))
                if what.free:
                    refined_scores = sorted([*refined_scores, after.score])[:_N_REFINED]
                elif after.score < lowest and self._settles(what, logs):
                    lowest = after.score
        self._factors.clear()  # of positions that were tried only once
        free = sorted((one for one in tried if one[0].free), key=lambda one: one[2].score)[:_N_REFINED]
        refined = [self._refine(what, logs) for what, logs, _ in free]
        closed = [one for one in tried if not one[0].free]
        closed += [one for one in refined if _explains_more(before, one[2], one[0], THRESHOLDS.min_score_gain)]
        closed.sort(key=lambda one: one[2].score)
        best = next((one for one in closed if self._settles(one[0], one[1])), None)
        if best is None:
            return None
        what, logs, after = best = _likelier(best, closed)
        rivals = [
            other.words
            for other, same, then in closed
            if other.words != what.words and same == logs and then.score < after.score + THRESHOLDS.rival_score
        ]
        return Mistake(what, logs, before, after, tuple(dict.fromkeys(rivals))[:3])

    def _confirm(self, found: Mistake) -> Mistake | None:
        """The mistake, if parts of the logs held out of the fit are explained better with it, and none much worse."""
        if self._masses_object(found) or (self._few and found.gain < THRESHOLDS.few_score_gain):
            return None
        folds = self._folds(self.meanings)
        before, free = (self._trial.held_out(folds, dissipates=x) for x in (self._dissipates, False))
        then = self._folds(self._with(found.hypothesis, found.logs))
        after = self._trial.held_out(then, dissipates=self._dissipates)
        least = 0.5 * THRESHOLDS.min_score_gain
        worse = any(other.score - own.score > least for own, other in zip(before.parts, after.parts, strict=True))
        if before.mean_score - after.mean_score < least or worse or not self._same_number(found.hypothesis, found.logs):
            return None
        return replace(found, held_out=after, driven=self._dissipates and free.mean_score - after.mean_score < least)

    def objects_to(self, what: Hypothesis) -> bool:
        """Whether a mistake in all logs would leave more of the torque unexplained than there is without it."""
        after = self._fit(self._with(what, tuple(range(len(self.meanings)))))
        return after.score > self.fit.score + THRESHOLDS.rival_score

    def _masses_object(self, found: Mistake) -> bool:
        """Whether torque that the links of the robot file explain well has the scale that they ask for without it."""
        what = found.hypothesis
        links = compare_with_links(self.corrected_samples(), self.meant_robot) if what.free == "torques" else None
        if links is None or links.correlations[what.place] < THRESHOLDS.sure_model_correlation:
            return False
        slope = float(np.log(links.slopes[what.place]))
        return bool(abs(slope + np.log(what.size)) > abs(slope) + THRESHOLDS.min_scale_logarithm)

    def _same_number(self, what: Hypothesis, logs: tuple[int, ...]) -> bool:
        """Whether held-out parts of the logs are explained best with about the number of a mistake, if any.

        A number that is the same in every motion is one of a column; what the model lacks asks for another in each.
        """
        if not what.free:
            return True
        said, spread = float(np.log(what.size)), THRESHOLDS.number_spread
        scores = []
        for share in (1.0, 1.0 - spread, 1.0 + spread):
            folds = self._folds(self._with(what.refine(float(np.exp(said * share))), logs))
            scores.append(self._trial.held_out(folds, dissipates=self._dissipates).mean_score)
        return scores[0] < min(scores[1:])

    def _may_explain(self, before: TrialFit, what: Hypothesis, logs: tuple[int, ...], gain: float) -> bool:
        """Whether a part of the samples leaves a mistake a chance: all together leave at least what the part does."""
        if self._trial.knows_torque:  # beside that of the columns, which takes as long to find as the columns
            return True
        meanings = self._with(what, logs)
        maps = [
            (samples, wiring.at_joints(meaning.positions), wiring.at_rows(meaning.torques))
            for samples, wiring, meaning in zip(self._samples, self._wirings, meanings, strict=True)
        ]
        part = [self._rows(log, meaning, _PART) for log, meaning in enumerate(meanings)]
        return _explains_more(before, self._trial.bound(part, self._trial.torque_size(maps)), what, gain)

    def _closes_loops(self, what: Hypothesis, logs: tuple[int, ...]) -> bool:
        """Whether positions that mean something else would be ones at which the robot's loops can be closed."""
        if self._trial.robot.closure is None or np.array_equal(what.positions, np.eye(len(what.positions))):
            return True
        try:
            for log, meaning in enumerate(self._with(what, logs)):
                self._rows(log, meaning)
        except (InputError, SingularError):
            return False
        return True

    def _settles(self, what: Hypothesis, logs: tuple[int, ...]) -> bool:
        """Whether a mistake in one log is why it disagrees with the others; a payload would be explained in part."""
        if len(logs) == len(self.meanings):
            return True
        before, after = (max(self._disagreement(own)) for own in (self.meanings, self._with(what, logs)))
        return after < max(THRESHOLDS.max_disagreement, THRESHOLDS.settled_share * before)

    def _candidates(self) -> Iterator[tuple[Hypothesis, tuple[int, ...]]]:
        """Mistakes in all logs and, where logs disagree, in single ones."""
        every = tuple(range(len(self._samples)))
        q = np.concatenate([one.q for one in self.corrected_samples()])
        turns = np.ptp(q, axis=0) > THRESHOLDS.min_degrees_range_rad * self.robot.radians
        scopes = [every]
        if len(every) > 1 and max(self._disagreement(self.meanings)) > THRESHOLDS.max_disagreement:
            scopes += [(log,) for log in every]
        n_samples = self._fit(self.meanings).n_samples
        for scope in scopes:
            for what in self._wirings[scope[0]].hypotheses():
                if scope != every and what.free not in ("", "clock"):  # a payload looks like a scale
                    continue
                if what.item == "units" and not self._may_be_degrees(what, turns):
                    continue
                if (n_samples[what.changed] >= MIN_SAMPLES).all():  # torque of a joint at rest would explain any other
                    yield what, scope

    @staticmethod
    def _may_be_degrees(what: Hypothesis, turns: Mask) -> bool:
        """Whether a joint whose positions shrink by another unit goes far, as read; one that hardly moves has none."""
        shrinks = np.diag(what.positions) < 1.0
        return bool(turns[shrinks].any() or not shrinks.any())

    def _refine(self, what: Hypothesis, logs: tuple[int, ...]) -> Tried:
        """The number of a mistake that explains most."""
        from scipy.optimize import minimize_scalar  # takes a while to load, and is needed for a suspected mistake only

        def fit_at(logarithm: float) -> TrialFit:
            return self._fit(self._with(what.refine(float(np.exp(logarithm))), logs))

        middle, place = np.log(what.size), np.inf
        for _ in range(1 if what.free == "clock" else _N_STEPS):  # noise of positions asks for ever slower clocks
            found = minimize_scalar(
                lambda x: fit_at(x).score,
                bounds=(middle - _REACH, middle + _REACH),
                method="bounded",
                options={"xatol": 2e-3, "maxiter": 20},
            )
            self._factors.clear()
            middle, place = found.x, found.x - middle
            if abs(place) < 0.97 * _REACH:
                break
        best = what.refine(float(np.exp(middle)))
        # A number that wants to be ever larger or smaller is none: that only hides what the model does not explain.
        if abs(middle) < THRESHOLDS.min_scale_logarithm or abs(place) >= 0.97 * _REACH:
            return best, logs, self._fit(self.meanings)
        return best, logs, fit_at(middle)

    def _with(self, what: Hypothesis, logs: tuple[int, ...]) -> list[Hypothesis]:
        """The meanings with one more mistake corrected in some logs."""
        return [meaning.then(what) if log in logs else meaning for log, meaning in enumerate(self.meanings)]

    def _fit(self, meanings: Sequence[Hypothesis]) -> TrialFit:
        """One model of all logs."""
        rows = [self._rows(log, meaning) for log, meaning in enumerate(meanings)]
        return self._trial.fit(rows, dissipates=self._dissipates)

    def _rows(self, log: int, meaning: Hypothesis, every: int = 1) -> TrialRows:
        """The equations of a log, or of one of so many samples, compressed once for each map of its positions."""
        key = (log, every, meaning.positions.tobytes(), meaning.clock, meaning.upside_down)
        wiring = self._wirings[log]
        if key not in self._factors:
            self._factors[key] = self._trial.compress(
                self._samples[log],
                wiring.at_joints(meaning.positions),
                wiring.zero,
                meaning.clock,
                meaning.upside_down,
                every,
            )
        return self._factors[key], wiring.at_rows(meaning.torques)

    def _disagreement(self, meanings: Sequence[Hypothesis]) -> tuple[float, ...]:
        """For each log by how much one model of all fits it worse than its own."""
        pairs = (self.shared_and_own_fit(log, meanings) for log in range(len(meanings)))
        return tuple(shared.score - own.score for shared, own in pairs)


def _likeness_to_links(samples: Sequence[TrialSamples], robot: Robot) -> float:
    """Mean correlation of the torque of strong joints with that of the file's links; 0 without masses."""
    links = compare_with_links(samples, robot)
    return 0.0 if links is None else float(links.correlations[links.strong].mean())


def _last(scores: Sequence[float]) -> float:
    """The worst of the scores that are refined, once there are enough."""
    return scores[-1] if len(scores) == _N_REFINED else np.inf


def _likelier(best: Tried, tried: Sequence[Tried]) -> Tried:
    """Of all positions or all torques with the wrong sign, where both explain about as much, the torques.

    A controller moved the robot by its positions; what sign torque has is a convention of whoever logs it.
    """
    what, logs, after = best
    n = len(what.positions)
    if not np.array_equal(what.positions, -np.eye(n)):
        return best
    alike = [one for one in tried if one[1] == logs and one[2].score < after.score + THRESHOLDS.rival_score]
    return next((one for one in alike if np.array_equal(one[0].torques, -np.eye(n))), best)


def _explains_more(before: TrialFit, after: TrialFit, what: Hypothesis, gain: float) -> bool:
    """Whether so much more is explained, of some joint a part that matters, and of no torque channel much less."""
    came_from = np.argmax(np.abs(what.torques), axis=1)  # torque that changes its joint is compared with itself
    earlier = before.residual_share[came_from]
    if (earlier - after.residual_share).max() < THRESHOLDS.min_explained_share:
        return False
    ratio = np.log(earlier / after.residual_share)
    return bool(ratio.sum() > gain and ratio.min() > -THRESHOLDS.max_joint_loss * max(1.0, ratio.sum()))
