"""Table 4 of Guo (2010): test errors and numbers of terms on the WebKB pages."""

from collections.abc import Mapping

from sklearn.model_selection import train_test_split

from polymargin import SparseSVCCV
from reproductions.declare import Band, Claim, Comparison, Context, Key, Reproduction, Theirs, difference
from reproductions.rules import HALF
from reproductions.sparse._arrays import top_pages
from reproductions.sparse._simulation import ADAPTIVE

PAPER = {
    ("AL1", "error"): Theirs(21.0, 1.65),
    ("ASN-I", "error"): Theirs(20.8, 1.47),
    ("ASN-II", "error"): Theirs(20.9, 1.58),
    ("APF", "error"): Theirs(20.8, 1.54),
    ("AL1", "terms"): Theirs(90.5, 7.06),
    ("ASN-I", "terms"): Theirs(89.0, 7.24),
    ("ASN-II", "terms"): Theirs(87.0, 6.62),
    ("APF", "terms"): Theirs(93.5, 7.41),
}


def repetition(context: Context) -> Mapping[Key, float]:
    """Split 2/3 to 1/3 and tune by five folds."""
    pages = top_pages(context)
    X, X_test, y, y_test = train_test_split(
        pages.data, pages.target, test_size=1 / 3, stratify=pages.target, random_state=context.seed
    )
    numbers: dict[Key, float] = {}
    for method, penalty in ADAPTIVE.items():
        model = SparseSVCCV(penalty=penalty, adaptive=True, per_variable=method == "ASN-II", eps=1e-3)
        model.set_params(n_Cs=4 if context.quick else 11, cv=2 if context.quick else 5).fit(X, y)
        numbers[method, "error"] = 100.0 * (1.0 - model.score(X_test, y_test))
        numbers[method, "terms"] = float(len(model.selected_features_))
    return numbers


def _alike(measure: str) -> list[Comparison]:
    return [
        difference(
            f"{measure}: {method} minus APF",
            (method, measure),
            ("APF", measure),
            HALF * PAPER["APF", measure].deviation,
        )
        for method in ADAPTIVE
        if method != "APF"
    ]


REPRODUCTION = Reproduction(
    title="Table 4, WebKB: errors in percent and selected terms",
    parts=("method", "measure"),
    repetition=repetition,
    repetitions=6,
    paper=PAPER,
    paper_repetitions=100,
    claims=(
        Claim("all methods have similar test errors", _alike("error"), same=True),
        Claim("all methods select similar numbers of terms", _alike("terms"), same=True),
    ),
    band=lambda key: Band.of_spread(PAPER[key].deviation, "the median absolute deviation that the paper prints"),
    method_part=0,
    medians=("error", "terms"),
    digits=1,
    protocol="The 1,396 pages are the test part of the common split, which has the paper's class sizes, with "
    "log-entropy weights and its 100 highest terms; Weston and Watkins' loss, splits stratified by class, "
    "lambda in 11 steps of two down to 1e-3 of where the first term enters, of equal errors the sparser model; "
    "gamma of the adaptive weights is 1.",
    notes="The deviations of the paper are median absolute ones.",
)
