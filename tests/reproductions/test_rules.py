"""The rules of the verdicts on made-up results: what must be reproduced, must not, must stay undecided."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from reproductions.declare import Band, Claim, Reproduction, Theirs, difference
from reproductions.judge import judge
from reproductions.rules import LEVEL, Answer, gain, same, share_of, signed_rank, together
from reproductions.run import Record

YES, NO, OPEN, NONE, PART = Answer.YES, Answer.NO, Answer.OPEN, Answer.NONE, Answer.PART


def noise(n, scale, seed=0):
    """Return numbers of mean zero and the given standard deviation, exactly."""
    values = np.random.default_rng(seed).normal(size=n)
    return scale * (values - values.mean()) / values.std(ddof=1)


@pytest.mark.parametrize(
    ("effects", "least", "expected"),
    [
        (1.0 + noise(10, 0.5), 0.5, YES),
        (0.05 + noise(30, 0.01), 0.5, YES),  # small but sure: the claim is of a sign, the level of a size
        (noise(30, 0.1), 0.5, NO),  # surely less than would bear the paper out
        (-1.0 + noise(10, 0.5), 0.5, NO),
        (np.zeros(10), 0.5, NO),
        (0.3 + noise(10, 2.0), 0.5, OPEN),  # may be nothing, may be what the paper says
        (1.0 + noise(4, 0.01), 0.5, OPEN),  # four repetitions decide nothing
        (noise(4, 0.001), 0.5, OPEN),
    ],
)
def test_gain(effects, least, expected):
    assert gain("", effects, least).answer is expected


def test_gain_without_a_least_effect_could_not_be_refuted_and_is_refused():
    with pytest.raises(ValueError, match="least must be positive, got 0"):
        gain("", [1.0] * 5, 0.0)


@pytest.mark.parametrize(
    ("effects", "band", "expected"),
    [
        (noise(10, 0.1), 0.5, YES),
        (0.4 + noise(100, 0.1), 0.5, YES),
        (2.0 + noise(10, 0.1), 0.5, NO),
        (-2.0 + noise(10, 0.1), 0.5, NO),
        (noise(10, 5.0), 0.5, OPEN),  # a wide interval is never agreement
        (0.5 + noise(10, 0.1), 0.5, OPEN),
        (np.zeros(4), 0.5, OPEN),
    ],
)
def test_same(effects, band, expected):
    assert same("", effects, band).answer is expected


def test_where_nothing_is_random_one_number_decides():
    assert gain("", [0.1], 0.5, exact=True).answer is YES
    assert gain("", [-0.1], 0.5, exact=True).answer is NO
    assert same("", [0.5], 0.5, exact=True).answer is YES
    assert same("", [0.6], 0.5, exact=True).answer is NO


def test_fewer_repetitions_never_make_agreement_easier():
    """What agrees with few repetitions still does when the same numbers are seen again."""
    for seed in range(20):
        few = 0.2 + noise(6, 0.5, seed)
        if same("", few, 0.5).answer is YES:
            assert same("", np.tile(few, 5), 0.5).answer is YES
    assert same("", 0.2 + noise(6, 0.5), 0.5).answer is OPEN
    assert same("", 0.2 + noise(60, 0.5), 0.5).answer is YES


@pytest.mark.parametrize("n", [5, 8, 12])
def test_signed_rank_is_the_exact_test(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        effects = rng.normal(0.3, 1.0, n)
        assert signed_rank(effects) == pytest.approx(
            wilcoxon(effects, alternative="greater", method="exact").pvalue, rel=1e-12
        )


def test_signed_rank_counts_all_signs_where_effects_are_tied():
    effects = np.array([1.0, 1.0, 2.0, -1.0, 2.0])
    ranks = np.array([2.0, 2.0, 4.5, 2.0, 4.5])
    signs = np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T
    reached = ranks[effects > 0].sum()
    assert signed_rank(effects) == pytest.approx(np.mean(signs @ ranks >= reached))
    assert signed_rank(np.zeros(6)) == 1.0
    assert signed_rank(np.ones(5)) == 2.0**-5 < LEVEL < signed_rank(np.ones(4))


def test_signed_rank_keeps_its_level():
    rng = np.random.default_rng(0)
    found = np.mean([signed_rank(rng.standard_t(3, 10)) < LEVEL for _ in range(2000)])
    assert 0.03 < found < 0.06


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([YES] * 8 + [NO] * 2, YES),
        ([YES] * 7 + [NO] * 2 + [OPEN], OPEN),
        ([YES] * 7 + [NO] * 3, NO),
        ([OPEN] * 10, OPEN),
        ([YES] * 4 + [OPEN] * 6, OPEN),
        ([], NONE),
    ],
)
def test_shares(answers, expected):
    assert share_of(answers) is expected


@pytest.mark.parametrize(
    ("answers", "expected"),
    [([YES, YES], YES), ([YES, NO], PART), ([NO, OPEN], NO), ([YES, OPEN], OPEN), ([], NONE), ([NONE], NONE)],
)
def test_several_claims(answers, expected):
    assert together(answers) is expected


# --- whole tables: two methods on two data sets of very different difficulty ---

METHODS = ("good", "fair", "poor")
MEANS = {"easy": (95.0, 90.0, 85.0), "hard": (60.0, 55.0, 50.0)}
PAPER = {
    (data, method): Theirs(mean, 1.0)
    for data, means in MEANS.items()
    for method, mean in zip(METHODS, means, strict=True)
}


def item(**options):
    claims = [
        Claim("good is ahead of poor", [difference(data, (data, "good"), (data, "poor"), 5.0) for data in MEANS])
    ]
    settings = {"repetitions": 10, "paper_repetitions": 100, "method_part": 1, "claims": claims} | options
    return Reproduction(
        "a table",
        ("data", "method"),
        lambda context: {},
        paper=PAPER,
        band=lambda key: Band.of_effect(5.0, "the gap between methods"),
        **settings,
    )


def records(means, n=10, scale=0.5):
    draws = {key: mean + noise(n, scale, seed) for seed, (key, mean) in enumerate(means.items())}
    return [Record(i, i, {key: float(draw[i]) for key, draw in draws.items()}, 1.0) for i in range(n)]


def means_of(*methods):
    return {(data, method): MEANS[data][METHODS.index(like)] for data in MEANS for method, like in methods}


def answers(verdict):
    return verdict.claimed, verdict.level.answer, verdict.order.answer


def test_a_table_that_must_be_reproduced():
    verdict = judge(item(), records(means_of(("good", "good"), ("fair", "fair"), ("poor", "poor"))))
    assert answers(verdict) == (YES, YES, YES)
    assert "6 of 6 numbers agree" in verdict.reason
    assert "6 of 6 pairs" in verdict.reason


def test_a_table_that_must_not_be_reproduced():
    """Methods in reverse within either data set: ranks pooled over the data would still correlate by .8."""
    verdict = judge(item(), records(means_of(("good", "poor"), ("fair", "fair"), ("poor", "good"))))
    assert answers(verdict) == (NO, NO, NO)
    assert "does not hold: good is ahead of poor" in verdict.reason


def test_a_table_that_must_stay_undecided():
    right = means_of(("good", "good"), ("fair", "fair"), ("poor", "poor"))
    assert answers(judge(item(), records(right, n=4))) == (OPEN, OPEN, OPEN)
    assert answers(judge(item(), records(right, n=8, scale=40.0))) == (OPEN, OPEN, OPEN)


def test_order_without_level_and_level_of_the_right_size():
    shifted = {key: Theirs(0).value + theirs.value + 20.0 for key, theirs in PAPER.items()}
    assert answers(judge(item(), records(shifted))) == (YES, NO, YES)


def test_methods_that_are_alike_here_are_not_in_the_papers_order():
    verdict = judge(item(), records(means_of(("good", "fair"), ("fair", "fair"), ("poor", "fair"))))
    assert verdict.order.answer is NO
    assert verdict.claimed is NO


def test_what_the_paper_does_not_print_as_a_spread_is_as_uncertain_as_ours():
    """A paper with one repetition is no firmer than one of ours."""
    single = item(paper_repetitions=1)
    right = means_of(("good", "good"), ("fair", "fair"), ("poor", "poor"))
    printed = {key: Theirs(theirs.value) for key, theirs in PAPER.items()}
    single = Reproduction(**{**single.__dict__, "paper": printed})
    assert judge(single, records(right, scale=0.5)).level.answer is YES
    assert judge(single, records(right, scale=5.0)).level.answer is OPEN


def test_claims_of_ours_do_not_enter_the_papers_verdict():
    ours = Claim("poor is ahead", [difference("", ("easy", "poor"), ("easy", "good"), 5.0)], of_paper=False)
    verdict = judge(item(claims=[ours]), records(means_of(("good", "good"), ("fair", "fair"), ("poor", "poor"))))
    assert verdict.claims[0][1].answer is NO
    assert verdict.claimed is NONE


def test_numbers_that_only_some_repetitions_have_are_judged_on_those():
    given = records(means_of(("good", "good"), ("fair", "fair"), ("poor", "poor")))
    for record in given[4:]:
        del record.values["hard", "poor"]
    verdict = judge(item(), given)
    assert verdict.claimed is OPEN
    assert {finding.repetitions for finding in verdict.claims[0][1].findings} == {4, 10}
