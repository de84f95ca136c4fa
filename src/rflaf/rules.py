"""Every number that governs a fit, in one place: what it does, and what chose it.

`python benchmarks/rules.py` fits the tables of `$RFLAF_DATA/suite` with other values, one rule at a
time, and writes losses and times relative to the values here to `benchmarks/results/rules.json`.
A rule with the word (measured) is in that result. The others have kept the values of earlier
versions, and wait to be measured the same way. Numbers that only keep rounding or memory in check
stay where they are used.

Code reads them as `rules.NAME` when it runs, so that a benchmark or a test can set them.
"""

from __future__ import annotations

from dataclasses import dataclass

# Size of a model, by rows
COMPONENTS = ((2000, 500), (10_000, 1000), (30_000, 2000))  # up to these rows; beyond them:
MOST_COMPONENTS = 3000
MEMBERS = ((5000, 5), (10_000, 3))  # of a team, up to these rows; beyond them one
SAMPLE_ROWS = 200_000  # rows that layers are learned on, where there are more
LEARNABLE_ROWS = (
    30  # of a member; with fewer its activation is the best of a few. benchmarks/few.py
)
FEWEST_FOLDED = 20  # rows; with fewer none are held out. benchmarks/few.py
HELD_OUT_ROWS = 100  # of a single member at least, or a third of all;
HELD_OUT_RARE = 5  # of these not of the most frequent class, or events of counts, if rare
DEALT_ROWS = 20  # of a class in a fold: rows of rarer ones are dealt out to the folds

# Forms of the inputs
BINS, MOST_BINS, FEWEST_BINS = 24, 512, 4  # of a column, of all columns, and of a column at least
RANK_KNOTS = 65  # quantiles that ranks are read from
SEVERAL_VALUES = 5  # that a column needs for ranks and bins to be another thing
QUANTILE_ROWS = 100_000  # that quantiles are taken of

# Trials of forms and metrics
TRIAL_STEPS, TRIAL_ROWS, TRIAL_FEATURES = 10, 6000, 400
MIXED_LOSS = 1.4  # (measured) times the best trial's loss: teams that are worse are not learned
MIXED_ROWS = 500  # up to which both are learned, whatever one trial says
METRIC_ROWS = {"full": 128, "diagonal": 512}  # most inputs of a metric; it takes d², 5 d rows
ROWS_PER_SCALE = 5  # that a scale per input takes,
ROWS_PER_BIN = 2  # and a scale per bin
ALWAYS_METRIC = 10_000  # rows beyond which a metric is always learned

# Learning sigma and L on sketches; work is rows × features²
STEPS_LEAST, ROWS_PER_STEP, ROWS_PER_STEP_ALONE = 8, 100, 50  # alone: with one member
TURNS = 3  # of the metric by gradients of a first solution
RATE = 0.1  # of Adam, relative to the size of what moves
RISE = 8  # steps over which the rate rises
ROUND = 32  # steps whose gain decides whether more are worth it
STAGES = ((3e7, 0.5), (4e8, 0.4), (1e9, 0.1))  # work of a step, and share of the steps
LIMITED_STAGE, LIMITED_GAIN = (4e9, 0.1), 0.7  # the last, where larger sketches lose so much less
MANY_FEATURES = 2000  # from which on the last stage is larger:
MANY_STAGE, MANY_LIMITED_STAGE = (2e9, 0.15), (8e9, 0.15)
WIDE_FEATURES = 5000  # beyond which conjugate gradients may be cheaper, and sketches are larger
WIDE_STAGES = ((4e8, 0.4), (6e9, 0.3), (3.2e10, 0.3))
SKETCH_FEATURES = 200  # at least: with fewer, weak inputs are not seen
FILL, MOST_FILL = 0.6, 1.2  # standard deviation of Z at the start, and at most, on [-2, 2]
FREQUENCIES = (0.3, 1.1, 2.2, 4.5, 9.0)  # of the waves to start from; 0.3 is nearly linear
SCREENED_INPUTS, SCREENED_ROWS, SCREENED_LEAST = 200, 4000, 200  # of screening before that
SCREENED_CELLS = 5  # of an input
SCREENED_GAIN = 0.8  # times the loss of the best other start: only then is it taken
SCREENED_REST = 0.1  # scale of inputs that screening sees nothing of, relative to the largest
MORE_METRICS = 2  # of a layer at most, besides the first. benchmarks/starts.py
SCREENED_LEFT = 0.01  # of what features leave: inputs that tell of less get no metric
LEAST_LEFT = 1e-4  # of the targets' variance, or nothing more is looked for
METRIC_GAIN, JUDGED_SKETCHES = 0.9, 3  # times the loss without it, on so many sketches, at most
LEFT_BEHIND, RESTARTS = 1.5, 2  # times the middle member's loss: learned again, at most so often
NOTHING_LEFT = 0.005  # of the targets' variance; members below are not compared
TRIAL_BEHIND = 2.0  # times the trial's loss counts as the middle one: sketches have fewer rows
MOST_TARGETS = 12  # more outputs are mixed down to this many, at random

# The loss in the learning
WORKING_ROWS = 1000  # (measured) of a member, from which on layers are learned again
FIRST_STEPS = 1.0  # times the usual steps before that, all on small sketches
SUREST = 3.0  # (measured) difference of scores beyond which a class is out of the question
HONEST_ROWS, HONEST_FEATURES = 10_000, 500  # of the model that gives these scores, at most
FLATTEST = 0.2  # times the curvature of the first round, for rows whose loss is nearly flat

# Penalties and weights
PENALTY_STEP = 4.0  # from one that is tried to the next
MOST_PENALTIES = 24
STRONGER_START = 4.0  # times the penalty of the sketches, where each trial is iterative
STALL_OUTPUTS, STALL_ROWS = 8, 1000  # more outputs, and held-out rows, that end the steps early
MIX_PARTS, LEAST_PART = 20, 0.1  # that team weights are made of; a team with less is left out
MOST_TEMPERATURE = 3.0  # that scores are divided or multiplied by
WRONG_ROWS = 0.1  # that temperatures expect besides those out of fold
FEW_ROWS_PENALTY = 1e-4  # of the features' variance, at least, where no rows are held out

# Local models: output weights for small parts of the rows. benchmarks/ablation.py, large.py
LOCAL_ROUNDS = 16  # at most, each for what the rounds before have left
LOCAL_PATIENCE = 2  # rounds without a gain, one after the other, that end them
LOCAL_PARTITIONS, LOCAL_ALONE = 10, 2  # of a team in a round, over its members, or its only one
LOCAL_FEATURES = 100  # of a part
LOCAL_SIZES = (50, 100, 25)  # rows of a part at least, of one partition after the other
LOCAL_TRIED, LOCAL_AXES = 16, 8  # directions that a cut is chosen from; columns among them
LOCAL_POOL = 64  # features of a member whose directions are among them
LOCAL_COLUMNS = 1000  # with more of them, cuts are along features alone
LOCAL_COMPARED = 5000  # rows that directions are compared on, at most
LOCAL_OVERLAP = 0.1  # of the rows of a part have a share in both of its halves
LOCAL_PENALTIES = (1.0, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)  # times the weight of a row
LOCAL_STEP = 4.0  # residual of a row in a round at most, unless the loss is quadratic
LOCAL_STRENGTHS = (0.1, 0.2, 0.35, 0.5)  # that rows held out choose from
LOCAL_GAIN = 0.998  # times the loss before a round, at most, or it is left out
LOCAL_DOUBT = (1.0, 0.5)  # standard errors of the gain of the first round, and of others, at least
LOCAL_NUMBERS = 1 << 23  # output weights of a team at most; four times as many while learning
LOCAL_LEAST = 300  # rows of a member

# The distribution of errors. benchmarks/uncertainty.py
SCALE_FEATURES, SCALE_MEMBERS = 100, 3  # of the fit of their scale
SCALE_OUTPUTS = 4  # targets that have a scale of their own; more have one together
SCALE_LEAST, SCALE_ROWS = 200, 2000  # rows below which the scale is constant, and at most
LEAST_SCALE = 0.3  # of the mean one that a loss knows: rows below count for less in its factor
SCALE_RANGE = 30.0  # times or over its middle, at most
RATIO_ROWS, LEAST_RATIO = 1000, 0.3  # of the error of the members' mean to that of one
KNOT_STEP, LAST_KNOT = 0.5, 2.5  # of the quantile function, in normal quantiles
TAIL_ERRORS, TAIL_PRIOR = 8, 3  # beyond the last knot at least, and those its slope is known from
TAIL_BEND = 0.5  # by which the slope grows there, in its logarithm: tails are heavier than normal
NORMAL_PART = 0.05  # of a normal distribution in the quantile function

# What is said about a fit. benchmarks/trust.py
IMPORTANCE_ROWS, IMPORTANCE_MEMBERS = 400, 2  # that are shuffled, and asked of each team

# Monotone columns: points at which a row is asked, with one to eight of them, and the most values
# of a column. benchmarks/monotone.py
LATTICE, MOST_KNOTS = (16, 64, 128, 256, 512, 512, 512, 512), 16

# Beyond the rows of a fit. benchmarks/outside.py
USUAL_FREE = 0.5  # standard deviations that members are asked beyond what was seen
FREE = (0.0, 0.25, 0.5, 1.0, 2.0)  # those that rows at the ends of a column choose from
TAIL_IMPORTANCE, MOST_TAILS = 0.01, 20  # columns whose ends are looked at
TAIL_SHARE, TAIL_ROWS = 0.25, 30  # of a column's range, and rows at least, that are held back
TAIL_FEATURES, TAIL_SAMPLE = 200, 3000  # of the copy of the model that is asked
LINE_REACH = 10.0  # times the length of the tail that a line was tried on, at most
TRIMMED = (0.001, 0.003, 0.01, 0.03)  # of the rows, beyond which members may not be asked
SLOPE_DOUBT = 0.5  # of a straight line: the least standard deviation of its slope
SPREAD_DOUBT = 4.0  # times the variance between members, beyond what was seen


@dataclass(frozen=True)
class Effort:
    """How much of the numbers above a fit takes. benchmarks/effort.py

    Attributes
    ----------
    components : int
        Features of a member at most, where their number is not given.
    widen, members, steps, tails : float
        Times the features, the members of a team (at least one), the steps of learning and the
        columns whose ends are looked at.
    trials : float
        Times the steps, features and rows of trials; 0: none, and columns are standardised.
    local : float
        Times the partitions of local models; 0: none.
    mixes : bool
        Whether there may be two teams.
    short : bool
        Whether layers are learned once, and on small sketches.
    """

    components: int = 1_000_000
    widen: float = 1.0
    members: float = 1.0
    steps: float = 1.0
    tails: float = 1.0
    trials: float = 1.0
    local: float = 1.0
    mixes: bool = True
    short: bool = False


# in the order of a fit with a time limit; "least" is for such fits alone
EFFORTS = {
    "least": Effort(100, members=0, steps=0.2, tails=0, trials=0, local=0, mixes=False, short=True),
    "fast": Effort(
        800, widen=1.6, members=0, steps=0.5, tails=0.05, trials=0.2, local=0.25, short=True
    ),
    "default": Effort(),
    "best": Effort(widen=2, members=2),
}
TIME_SHARE = 0.95  # of a time limit after which no more is begun
LEARNING_SHARE = 0.5  # of the time that is left, for trials and learning
HOPELESS = 2.0  # times what the last effort has taken: with less time left, the next is not begun
