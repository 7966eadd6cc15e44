"""What the papers did to their real data before classifying them."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from polymargin.checks import check_flag, check_integer


def standardize_arrays(X: Any, *, logged: bool = True) -> NDArray[np.float64]:
    """Standardise every microarray (row) to mean 0 and standard deviation 1, after base-10 logarithms.

    This is the preprocessing of the SRBCT data by Lee, Lin & Wahba (2004), section 6.1, and Dudoit et al. (2002).
    The stored SRBCT data are natural logarithms already; the base is a factor, which standardising removes. Genes
    are then ranked by BSS/WSS (29), which orders them as scikit-learn's `f_classif` does: use
    ``SelectKBest(f_classif, k=100)`` within the pipeline, so that only training arrays choose.

    Parameters
    ----------
    X : array-like of shape (n_arrays, n_genes)
    logged : bool, default=True
        Whether X holds logarithms; if not, X must be positive.

    Returns
    -------
    ndarray of shape (n_arrays, n_genes)

    Examples
    --------
    >>> from polymargin.datasets import standardize_arrays
    >>> standardize_arrays([[1.0, 10.0, 100.0]], logged=False).round(4)
    array([[-1.2247,  0.    ,  1.2247]])
    """
    X = check_array(X, dtype=np.float64)
    if not check_flag("logged", logged):
        if X.min() <= 0:
            raise ValueError(f"X must be positive to take logarithms (logged=False), got {X.min():g}.")
        X = np.log10(X)
    scales = X.std(axis=1, keepdims=True)
    if (scales == 0).any():
        raise ValueError(f"X must vary within every array, got a constant row {int(np.argmin(scales))}.")
    return (X - X.mean(axis=1, keepdims=True)) / scales


def log_entropy(counts: Any) -> sp.csr_array:
    """Weigh term counts by local logarithm and global entropy (Dumais 1991), as Guo (2010), section 4.2, does.

    x_ij = e_j log(1 + f_ij), e_j = 1 + sum_i p_ij log(p_ij) / log(n), p_ij = f_ij / sum_i f_ij: the weight e_j is
    1 for a term of one page and 0 for a term spread evenly over all pages. Terms that never occur get weight 0.

    Parameters
    ----------
    counts : array-like or sparse matrix of shape (n_pages, n_terms)
        Non-negative counts f_ij.

    Returns
    -------
    csr_array of shape (n_pages, n_terms)

    Examples
    --------
    >>> from polymargin.datasets import log_entropy
    >>> log_entropy([[1, 2], [1, 0]]).toarray().round(4)
    array([[0.    , 1.0986],
           [0.    , 0.    ]])
    """
    counts = check_array(counts, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
    counts = sp.csr_array(counts)
    counts.eliminate_zeros()
    if counts.nnz and counts.data.min() < 0:
        raise ValueError(f"counts must be non-negative, got {counts.data.min():g}.")
    totals = np.asarray(counts.sum(axis=0)).ravel()
    shares = counts.data / totals[counts.indices]
    entropies = np.bincount(counts.indices, shares * np.log(shares), minlength=counts.shape[1])
    weights = np.where(totals > 0, 1.0 + entropies / np.log(counts.shape[0]), 0.0)
    return sp.csr_array(
        (weights[counts.indices] * np.log1p(counts.data), counts.indices, counts.indptr), shape=counts.shape
    )


def top_terms(weighted: Any, n_terms: int = 100) -> NDArray[np.intp]:
    """Return the columns of the `n_terms` terms of highest total weight, the highest first.

    Guo (2010) keeps "the top 100 terms with the highest log-entropy weights". By e_j itself these would be names
    that occur on a page or two; by total weight sum_i x_ij they are terms such as "system", the paper's example.

    Parameters
    ----------
    weighted : array-like or sparse matrix of shape (n_pages, n_terms)
        The result of :func:`log_entropy`.
    n_terms : int, default=100

    Returns
    -------
    ndarray of shape (n_terms,)

    Examples
    --------
    >>> from polymargin.datasets import log_entropy, top_terms
    >>> top_terms(log_entropy([[1, 2, 0], [1, 0, 1], [1, 0, 0]]), 2)
    array([1, 2])
    """
    weighted = check_array(weighted, accept_sparse="csr", dtype=np.float64)
    n_terms = check_integer("n_terms", n_terms, at_least=1)
    if n_terms > weighted.shape[1]:
        raise ValueError(f"n_terms must be at most the number of terms, {weighted.shape[1]}, got {n_terms}.")
    totals = np.asarray(weighted.sum(axis=0)).ravel()
    return np.argsort(-totals, kind="stable")[:n_terms]
