"""Kernels, landmarks (reduced kernels) and Gram providers."""

from polymargin.gram.kernels import (
    KERNELS,
    LARGEST_GAMMA,
    SMALLEST_GAMMA,
    Kernel,
    check_precomputed,
    kernel_for,
    resolve_kernel,
    row_norms_squared,
)
from polymargin.gram.landmarks import (
    KernelFeatures,
    NystroemMap,
    RowHash,
    distinct_rows,
    draw_landmarks,
    given_landmarks,
    landmark_quota,
    lowest_rows,
    row_keys,
)
from polymargin.gram.points import PointKernel
from polymargin.gram.products import skinny_product
from polymargin.gram.providers import (
    DenseGram,
    FeatureGram,
    Gram,
    LazyGram,
    kernel_root,
    make_gram,
    pivoted_cholesky,
    products_at,
    products_by_rows,
)

__all__ = [
    "KERNELS",
    "LARGEST_GAMMA",
    "SMALLEST_GAMMA",
    "DenseGram",
    "FeatureGram",
    "Gram",
    "Kernel",
    "KernelFeatures",
    "LazyGram",
    "NystroemMap",
    "PointKernel",
    "RowHash",
    "check_precomputed",
    "distinct_rows",
    "draw_landmarks",
    "given_landmarks",
    "kernel_for",
    "kernel_root",
    "landmark_quota",
    "lowest_rows",
    "make_gram",
    "pivoted_cholesky",
    "products_at",
    "products_by_rows",
    "resolve_kernel",
    "row_keys",
    "row_norms_squared",
    "skinny_product",
]
