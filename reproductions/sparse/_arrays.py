"""Gene-expression data and web pages prepared as in sections 4.1 and 4.2 of Guo (2010)."""

import numpy as np
from sklearn.feature_selection import f_classif
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from polymargin import SparseSVCCV
from polymargin.datasets import log_entropy, top_terms
from reproductions.declare import Claim, Comparison, Context, Key


def top_genes(context: Context, name: str, n_genes: int = 500) -> Bunch:
    """Return the genes of highest BSS/WSS (8) over all arrays, as the paper selects them, with their names.

    f_classif orders the genes as (8) does. Selecting before splitting flatters every method alike.
    """
    arrays = context.fetch(name)
    # genes that do not vary have no statistic
    relevance = np.nan_to_num(f_classif(arrays.data, arrays.target)[0], nan=-1.0)
    genes = np.argsort(-relevance, kind="stable")[: 20 if context.quick else n_genes]
    names = np.arange(arrays.data.shape[1]) if arrays.feature_names is None else np.asarray(arrays.feature_names)
    return Bunch(data=arrays.data[:, genes], target=arrays.target, names=names[genes])


def top_pages(context: Context, n_terms: int = 100) -> Bunch:
    """Return the 1,396 WebKB pages with the class sizes of the paper: their highest terms, standardised."""
    pages = context.fetch("webkb")
    rows = pages.test_indices[:: 5 if context.quick else 1]
    weighted = log_entropy(pages.data[rows])
    terms = top_terms(weighted, 20 if context.quick else n_terms)
    X = StandardScaler().fit_transform(weighted[:, terms].toarray())
    return Bunch(data=X, target=pages.target[rows], names=np.asarray(pages.feature_names)[terms])


def separations(name: str, model: SparseSVCCV) -> dict[Key, float]:
    """Return how many variables a model selects, and the share that separates some pairs of classes only."""
    separated = ~model.fused_pairs_[:, model.coef_.any(axis=0)]
    some = separated.any(axis=0) & ~separated.all(axis=0)
    return {
        (name, "selected"): float(separated.shape[1]),
        (name, "share separating some pairs only"): float(some.mean()) if len(some) else 0.0,
    }


def many_separate_some(name: str) -> Claim:
    """Return what the paper reads off its maps: many variables separate some pairs only; many is at least half."""
    return Claim(
        f"{name}: many of the selected variables separate some pairs only",
        [
            Comparison(
                "share minus one half", lambda values: values[name, "share separating some pairs only"] - 0.5, 0.1
            )
        ],
    )
