"""Table 3 of Lee, Lin & Wahba: error rates of six methods on four data sets."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polymargin import MarginSearch, MulticategorySVC
from polymargin.datasets import make_waveform
from reproductions.declare import Band, Claim, Comparison, Context, Key, Reproduction, Theirs, difference
from reproductions.rules import HALF

Rows = tuple[np.ndarray, np.ndarray]

_METHODS = ("MSVM", "QDA", "LDA", "1-NN", "OVR", "Weston-Watkins")
_PRINTED = {
    "Wine": (0.0169, 0.0169, 0.0112, 0.0506, 0.0169, 0.0169),
    "Glass": (0.3645, None, 0.4065, 0.2991, 0.3458, 0.3170),
    "Waveform": (0.1564, 0.1917, 0.1757, 0.2534, 0.1753, 0.1696),
    "Vehicle": (0.0694, 0.1185, 0.1908, 0.1214, 0.0809, 0.0925),
}
PAPER = {
    (name, method): Theirs(rate)
    for name, rates in _PRINTED.items()
    for method, rate in zip(_METHODS, rates, strict=True)
    if rate is not None
}


def repetition(context: Context) -> Mapping[Key, float]:
    """Cross-validated errors of wine and glass, test errors of waveform and vehicle."""
    values: dict[Key, float] = {}
    for name in ("Wine", "Waveform") if context.quick else _PRINTED:
        train, test = _rows(name, context)
        scaler = StandardScaler().fit(train[0])
        train = scaler.transform(train[0]), train[1]
        if test is not None:
            test = scaler.transform(test[0]), test[1]
        folds = StratifiedKFold(3 if context.quick else 10, shuffle=True, random_state=context.seed % 2**32)
        with warnings.catch_warnings():
            # Glass has a class of nine.
            warnings.simplefilter("ignore", UserWarning)
            for method, machine in _methods(name, train[0].shape[1], folds, context).items():
                values[name, method] = _error(machine, folds, train, test)
    return values


def _error(machine: Any, folds: StratifiedKFold, train: Rows, test: Rows | None) -> float:
    """Return the error on the test rows, or else that of the folds, for searches the least one as in the paper."""
    if test is not None:
        return 1.0 - machine.fit(*train).score(*test)
    if isinstance(machine, MarginSearch):
        return -float(machine.fit(*train).best_score_)
    if isinstance(machine, GridSearchCV):
        # Weigh folds by their size: what is counted are errors.
        return 1.0 - float(machine.fit(*train).best_score_)
    return 1.0 - float(cross_val_score(machine, *train, cv=folds).mean())


def _methods(name: str, p: int, folds: StratifiedKFold, context: Context) -> dict[str, Any]:
    Cs = (1.0, 10.0) if context.quick else tuple(8.0 ** np.arange(3))
    widths = (1.0 / p,) if context.quick else tuple(4.0**power / p for power in range(-1, 2))
    searches = {
        label: MarginSearch(
            MulticategorySVC(loss=loss, tol=1e-2), Cs=Cs, gammas=widths, criterion=folds, search_tol=None
        )
        for label, loss in (("MSVM", "lee"), ("Weston-Watkins", "weston"))
    }
    grid = {"estimator__C": Cs, "estimator__gamma": widths}
    methods = searches | {
        "LDA": LinearDiscriminantAnalysis(),
        "1-NN": KNeighborsClassifier(1),
        "OVR": GridSearchCV(OneVsRestClassifier(SVC()), grid, cv=folds),
    }
    if name == "Glass":  # some classes have fewer members than variables
        return methods
    # Variables of vehicle are nearly collinear: the ridge, not a refusal, is to deal with that.
    return methods | {"QDA": QuadraticDiscriminantAnalysis(reg_param=1e-6, tol=1e-9)}


def _rows(name: str, context: Context) -> tuple[Rows, Rows | None]:
    """Return training and test rows of the paper's sizes; wine and glass have no test rows."""
    if name == "Wine":
        return load_wine(return_X_y=True), None
    if name == "Waveform":
        sizes = (150, 500) if context.quick else (300, 4700)
        train, test = (
            make_waveform(size, random_state=part) for size, part in zip(sizes, context.seeds(2), strict=True)
        )
        return (train.data, train.target), (test.data, test.target)
    data = context.fetch(name.lower())
    if name == "Glass":
        return (data.data, data.target), None
    seed = context.seed % 2**32
    parts = train_test_split(data.data, data.target, test_size=346, stratify=data.target, random_state=seed)
    return (parts[0], parts[2]), (parts[1], parts[3])


LEADS = {"Wine": 0.0057, "Glass": 0.0654, "Waveform": 0.0132, "Vehicle": 0.0115}
"""What the paper reads off a row: LDA's lead on wine, the nearest neighbour's on glass, MSVM's on the others."""


def _leads(name: str, better: str, rivals: Sequence[str]) -> list[Comparison]:
    apart = {rival: PAPER[name, rival].value - PAPER[name, better].value for rival in rivals}
    return [
        difference(f"{name}: {rival} minus {better}", (name, rival), (name, better), HALF * gap)
        for rival, gap in apart.items()
    ]


CLAIMS = (
    Claim("MSVM is the best on waveform", _leads("Waveform", "MSVM", _METHODS[1:])),
    Claim("MSVM is the best on vehicle", _leads("Vehicle", "MSVM", _METHODS[1:])),
    Claim(
        "on wine MSVM, QDA, OVR and Weston-Watkins do alike",
        [
            difference(f"Wine: {rival} minus MSVM", ("Wine", rival), ("Wine", "MSVM"), 0.0112)
            for rival in ("QDA", "OVR", "Weston-Watkins")
        ],
        same=True,
    ),
    Claim(
        "on glass the nearest neighbour is the best, and MSVM better than LDA",
        _leads("Glass", "1-NN", ("MSVM", "LDA", "OVR", "Weston-Watkins")) + _leads("Glass", "MSVM", ("LDA",)),
    ),
    Claim(
        "the paper's vehicle is another set: the nearest neighbour, which has nothing to tune, errs far more "
        "often here",
        [
            Comparison(
                "Vehicle: error of 1-NN minus the paper's",
                lambda values: values["Vehicle", "1-NN"] - PAPER["Vehicle", "1-NN"].value,
                HALF * PAPER["Vehicle", "1-NN"].value,
            )
        ],
        of_paper=False,
    ),
)

REPRODUCTION = Reproduction(
    title="Table 3: error rates on wine, glass, waveform and vehicle",
    parts=("data", "method"),
    repetition=repetition,
    repetitions=6,
    paper=PAPER,
    paper_repetitions=1,
    claims=CLAIMS,
    band=lambda key: Band.of_effect(LEADS[key[0]], "the lead that the paper reads off the row"),
    method_part=1,
    digits=4,
    protocol="Standardised data; Gaussian kernels, C = 1, 8, 64 and gamma = 1/4, 1, 4 over the number of "
    "variables by ten folds; of equal errors the smaller C, then the first width is taken. On wine and glass "
    "the error is the least one of the folds, as the paper seems to have it (its numbers are whole errors of "
    "178 and 214).",
    notes="Waveform is simulated anew. The paper does not say how it scaled, which grid it searched, or which "
    "rows of vehicle it held out; its numbers are taken to be as uncertain as ours vary between repetitions. On "
    "wine two errors of 178 count as alike.",
)
