"""Learning the local models of all members, in rounds: each for what the rounds before have left.

They are learned twice for each member. First on the rows that it may see, so that those of its fold
can choose penalty, strength and the number of rounds. Then, with these, on all rows, for the model
that predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rflaf import fused, rules
from rflaf.fitting.directions import draw_candidates, in_cells, most_telling
from rflaf.fitting.local import Local, by_part, cut_rows, joined, shares
from rflaf.fitting.members import Member, teams_of
from rflaf.fitting.task import Task, means_folds
from rflaf.rows.sample import some_of
from rflaf.runtime.cached import computed_once
from rflaf.runtime.clock import may_learn
from rflaf.runtime.progress import Progress
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import features, project

Array = NDArray[Any]
Places = NDArray[np.intp]
Locals = tuple[Local, ...]


class LocalModels(NamedTuple):
    """Those of a member, in units of the loss; the rows of its fold have no part in `honest`."""

    honest: Locals = ()
    last: Locals = ()


def learn_local(
    task: Task, judges: Sequence[Member | None], members: list[Member]
) -> list[LocalModels]:
    """Local models for each member, none where they gain nothing.

    `judges` have weights that the rows of their fold have no part in, and `members` are what
    predicts in the end, both in units of the loss.
    """
    found = [LocalModels()] * len(members)
    settings, fold = task.settings, task.fold
    # a penalty that is given is that of one ridge regression of all rows
    wanted = settings.local_models and settings.alpha is None and settings.holds_out
    wanted = wanted and not settings.uses_cg and not settings.online and settings.share.local > 0
    least = min(np.count_nonzero(fold != each) for each in task.folds.of_member)
    if not wanted or least < rules.LOCAL_LEAST or None in judges:
        return found
    teams = teams_of([member.layer for member in members])
    with Progress("fitting local models", len(teams) * rules.LOCAL_ROUNDS, settings.verbose) as bar:
        for places in teams:
            team = [_Learner(task, k, judges[k], members[k]) for k in places]
            _learn_rounds(task, team, bar)
            for k, learner in zip(places, team):
                found[k] = LocalModels(joined(learner.honest), joined(learner.last))
    return found


def _learn_rounds(task: Task, team: list[_Learner], bar: Progress) -> None:
    """Rounds of local models for a team, as long as they lower the loss on its folds."""
    every = rules.LOCAL_PENALTIES
    penalties: Sequence[float] = every
    kinds: Sequence[bool] = (True, False)
    failed = at = 0
    for number in range(max(1, round(task.settings.share.local * rules.LOCAL_ROUNDS))):
        if not may_learn(more=0.5):
            return
        rounds = [_Round.learn(task, team, number, telling, penalties) for telling in kinds]
        known = [each for each in rounds if each is not None]
        failed = 0 if known else failed + 1
        if failed == rules.LOCAL_PATIENCE:
            return
        tried = len(penalties)
        if known:
            best = min(known, key=lambda each: each.chosen.loss)
            best.take(team, penalties, task.loss.outputs)
            at, kinds = every.index(penalties[best.chosen.penalty]), (best.telling,)
            bar.step({"loss": best.chosen.loss})
        if known or tried == 1:  # most of the work is for penalties: one is enough while it helps
            near = int(failed > 0 or tried == len(every))
            penalties = every[max(at - near, 0) : at + near + 1]


class _Round(NamedTuple):
    """What a round would add: plans and models for each member, and what the folds choose."""

    telling: bool
    plans: list[list[PartitionPlan]]
    models: list[Locals]
    chosen: RoundChoice

    @classmethod
    def learn(
        cls,
        task: Task,
        team: list[_Learner],
        number: int,
        telling: bool,
        penalties: Sequence[float],
    ) -> _Round | None:
        """None without memory for it, or where it does not lower the loss on the folds."""
        plans = [
            _plans(task, learner, number, place, len(team), telling, len(penalties))
            for place, learner in enumerate(team)
        ]
        if not all(plans):
            return None
        models: list[Locals] = [()] * len(team)

        def learn(k: int) -> None:
            models[k] = team[k].seen.learn(plans[k], penalties)

        parallel(learn, len(team))
        chosen = _choose(task, [learner.held_out for learner in team], models, number == 0)
        return None if chosen is None else cls(telling, plans, models, chosen)

    def take(self, team: list[_Learner], penalties: Sequence[float], outputs: int) -> None:
        """Add it to the members' scores, learned again with the rows of their folds."""
        _, penalty, strength = self.chosen

        def again(k: int) -> None:
            honest = tuple(_of_penalty(each, penalty, outputs) for each in self.models[k])
            last = team[k].every.learn(self.plans[k], [penalties[penalty]])
            team[k].add(times(honest, strength), times(last, strength))

        parallel(again, len(team))


class _Learner:
    """A member while its local models are learned, and the rows that it sees, judges and has."""

    def __init__(self, task: Task, k: int, judge: Any, member: Member) -> None:
        inside = task.fold == judge.layer.fold
        self.k, self.layer = k, judge.layer
        # with many columns, as sparse ones may be, directions of all of them would be a huge matrix
        few = len(self.layer.form.mean) <= rules.LOCAL_COLUMNS
        self.scales = self.layer.axis_scales if few else np.zeros(1)
        directions = self.layer.components
        if few:
            directions = np.hstack([directions, self.layer.axes])
        width = self.layer.components.shape[1]
        self.pool = task.settings.rng(13, k).permutation(width)[: rules.LOCAL_POOL]
        self.seen = _Rows(task, judge, np.flatnonzero(~inside), directions)
        self.held_out = _Rows(task, judge, np.flatnonzero(inside), directions)
        self.every = _Rows(task, member, np.arange(len(inside)), directions)
        self.honest: Locals = ()
        self.last: Locals = ()

    def add(self, honest: Locals, last: Locals) -> None:
        self.honest, self.last = self.honest + honest, self.last + last
        self.seen.add(honest)
        self.held_out.add(honest)
        self.every.add(last)


def times(models: Locals, factor: Any) -> Locals:
    return tuple(each.times(factor) for each in models)


class PartitionPlan(NamedTuple):
    """A partition that is to be learned: the least rows of a part, the depth, and the features.

    Cuts are made along the most telling ones of the `candidates`, depth × directions; if there is
    one of each level, these are the first of the features.
    """

    size: int
    depth: int
    columns: Places
    candidates: Places


def _plans(
    task: Task, learner: _Learner, number: int, place: int, members: int, telling: bool, tried: int
) -> list[PartitionPlan]:
    """The partitions of a round, for the member with this place in its team.

    Cuts are along `telling` directions, or along directions of features drawn at random. `tried`
    is the number of penalties.
    """
    layer, sizes, share = learner.layer, rules.LOCAL_SIZES, task.settings.share.local
    wanted = rules.LOCAL_ALONE if members == 1 else rules.LOCAL_PARTITIONS / members
    count = max(round(share * wanted), 1)
    rows, width = np.count_nonzero(task.fold != layer.fold), layer.components.shape[1]
    m = min(rules.LOCAL_FEATURES, width)
    room = rules.LOCAL_NUMBERS // (members * task.loss.outputs * (m + 1))
    room -= sum(local.coef.shape[0] * local.coef.shape[1] for local in learner.last)
    room //= -(-tried // 4)  # the weights for all of these are held at once
    plans = []
    for i in range(number * count, (number + 1) * count):
        size = sizes[(i if members == 1 else i + place) % len(sizes)]
        depth = min(int(np.log2(max(rows / size, 1))), m)
        if depth and room >= 2**depth:
            room -= 2**depth
            rng = task.settings.rng(11, learner.k, i)
            columns = rng.permutation(width)[:m]
            candidates = columns[:depth, None]
            if telling:
                candidates = draw_candidates(rng, depth, learner.pool, width, learner.scales)
            plans.append(PartitionPlan(size, depth, columns, candidates))
    return plans


def _of_penalty(model: Local, number: int, outputs: int) -> Local:
    """One of the penalties, where the weights for several are side by side."""
    at = slice(number * outputs, (number + 1) * outputs)
    return replace(model, coef=np.ascontiguousarray(model.coef[:, :, at]), unit=model.unit[at])


class RoundChoice(NamedTuple):
    """The number of a penalty and a strength, and the loss of rows held out with these."""

    loss: float
    penalty: int
    strength: float


def _choose(
    task: Task, held_out: list[_Rows], tried: list[Locals], first: bool
) -> RoundChoice | None:
    """The penalty and the strength with the least loss on rows held out; None: no gain.

    A gain has to be larger than chance explains. The first round, which chooses from most, has to
    show that there is something to gain at all.
    """
    loss = task.loss
    more = [rows.scores_of(models) for rows, models in zip(held_out, tried)]
    added = np.concatenate(more).reshape(sum(map(len, more)), -1, loss.outputs)
    base, y, weights = (
        np.concatenate([getattr(rows, name) for rows in held_out])
        for name in ("scores", "y", "own_weights")
    )
    best = min(
        RoundChoice(loss.value(base + strength * added[:, number], y, weights), number, strength)
        for number in range(added.shape[1])
        for strength in rules.LOCAL_STRENGTHS
    )
    before, _ = loss.slopes(base, y)
    after, _ = loss.slopes(base + best.strength * added[:, best.penalty], y)
    gain, share = before - after, weights / weights.sum()
    mean = float(share @ gain)
    doubt = float(np.sqrt(np.square(share) @ np.square(gain - mean)))
    least = (1 - rules.LOCAL_GAIN) * abs(float(share @ before))
    return best if mean > max(least, rules.LOCAL_DOUBT[not first] * doubt) else None


class _Rows:
    """Some rows as a member takes them, and the scores that it has for them so far."""

    def __init__(self, task: Task, member: Any, at: Array, directions: Array) -> None:
        self.member, self.layer = member, member.layer
        self.directions = directions
        sample, self._loss = task.sample, task.loss
        fold = means_folds(self.layer, task.folds, sample.keys)
        self.inputs = self.layer.inputs(sample.x[at], None if fold is None else fold[at])
        self.y, self.own_weights = sample.y[at], sample.weights[at]
        self.scores = member.scores_of(self.inputs)
        self.intercept = task.settings.fit_intercept
        self._known: dict[int, Array] = {}
        self._compared = some_of(len(at), rules.LOCAL_COMPARED, task.settings.rng(12))

    def scores_of(self, models: Locals) -> Array:
        """What local models would add to the scores."""
        return replace(self.member, local=models).local_scores(self.inputs)

    def add(self, models: Locals) -> None:
        self.scores = self.scores + self.scores_of(models)

    @computed_once
    def _flattest(self) -> float:
        """The least curvature that a row counts with."""
        constant = self._loss.constant(self.y, self.own_weights) * self.intercept
        bend = self._loss.quadratic_model(np.broadcast_to(constant, self.scores.shape), self.y).bend
        usual = np.average(bend, weights=self.own_weights)
        return rules.FLATTEST * 2 * float(usual)  # the bend is half the curvature

    def _left(self) -> tuple[Array, Array]:
        """How far scores are to move by the loss's quadratic model, n × C, and weights in it."""
        with np.errstate(over="ignore", invalid="ignore"):
            response, bend = self._loss.quadratic_model(self.scores, self.y, self._flattest)
            left, weights = response - self.scores, self.own_weights * bend
            if not self._loss.quadratic:  # far from its scores the model of a rare event is none
                far = np.maximum(np.abs(left).max(axis=1) / rules.LOCAL_STEP, 1)
                left, weights = left / far[:, None], weights * far
        usable = np.isfinite(left).all(axis=1) & np.isfinite(weights)  # scores may be extreme
        return np.where(usable[:, None], left, 0.0), np.where(usable, weights, 0.0)

    def learn(self, plans: list[PartitionPlan], penalties: Sequence[float]) -> Locals:
        """Local models with the weights for all penalties side by side."""
        self.left, self.weights = self._left()
        for plan in plans:  # before threads share the work: products round by what is in a call
            if plan.candidates.shape[1] > 1:
                self._codes(plan.candidates.ravel())
        grown: list[Any] = [None] * len(plans)

        def grow(i: int) -> None:
            grown[i] = self._grow(plans[i], penalties)

        parallel(grow, len(plans))
        found = []
        for depth in sorted({plan.depth for plan in plans}):
            same = [i for i, plan in enumerate(plans) if plan.depth == depth]
            columns, cuts, widths, weights = zip(*(grown[i] for i in same))
            unit = np.max([np.abs(each).max(axis=(0, 2)) for each in weights], axis=0)
            unit = np.where(unit > 0, unit, 1.0)
            coef = np.empty((len(same), *weights[0].shape), np.float32)
            for place, each in enumerate(weights):
                np.divide(each, unit[:, None], out=coef[place], casting="same_kind")
            model = Local(np.stack(columns), np.stack(cuts), np.stack(widths), coef, unit)
            found.append(model.times(len(same) / len(plans)))
        return tuple(found)

    def _codes(self, directions: Places) -> Array:
        """The cells of the compared rows along directions, which all rounds draw from a few."""
        new = np.array([each for each in np.unique(directions) if each not in self._known], np.intp)
        if len(new):
            w = np.ascontiguousarray(self.directions[:, new])
            z = project(self.inputs[self._compared], w)
            self._known.update(zip(new.tolist(), map(in_cells, z.T)))
        return np.stack([self._known[each] for each in directions.tolist()])

    def _columns(self, plan: PartitionPlan) -> Places:
        """The directions of a partition, those of its cuts first."""
        if plan.candidates.shape[1] == 1:
            return plan.columns
        pool, some = plan.candidates.ravel(), self._compared
        given = self.left[some], self.weights[some], self.own_weights[some]
        cut = pool[most_telling(self._codes(pool), *given, plan.depth)]
        rest = plan.columns[~np.isin(plan.columns, cut)]
        return np.concatenate([cut, rest])[: len(plan.columns)]

    def _grow(
        self, plan: PartitionPlan, penalties: Sequence[float]
    ) -> tuple[Array, Array, Array, Array]:
        """A partition: its directions, cuts, their widths, and the output weights of its parts."""
        size, depth, columns = plan.size, plan.depth, self._columns(plan)
        z = project(self.inputs, np.ascontiguousarray(self.directions[:, columns]))
        cuts, widths = cut_rows(z[:, :depth], self.own_weights, depth)
        at = shares(cuts, widths, z)
        phi = features(self.layer.sigma, z, float(self.intercept))
        squares = np.einsum("nm,nm->n", phi, phi, dtype=np.float64) - self.intercept
        square = float(np.average(squares, weights=self.own_weights))
        count = len(cuts) + 1
        row = self.weights.sum() / (count * size)  # what a row counts for, or a little more
        alphas = np.array(penalties) * row * (square if square > 0 else 1.0)
        parts = by_part(at, self.weights, count)
        coef = fused.fit_parts(parts, phi, self.left, alphas).reshape(count, -1, phi.shape[1])
        return columns, cuts, widths, coef
