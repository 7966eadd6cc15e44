"""Unbalanced classes in the plane after Fung & Mangasarian, Figures 2 to 6.

The paper gives the sizes, the shapes and the training correctness of its two examples, not their distributions;
these are ours, chosen so that plain, balanced and refined proximal machines differ as they do there.
"""

from typing import Any

from sklearn.utils import Bunch

from polymargin.datasets._population import simulate
from polymargin.datasets.planar import (
    Gaussian,
    PlanarClasses,
    Ring,
    check_class_sizes,
    proportions,
    round_gaussian,
)


def make_unbalanced_pair(n_samples: tuple[int, int] = (85, 15), *, random_state: Any = None) -> Bunch:
    """Draw a wide large class and a compact small one at its edge, after Figures 2 to 4 of Fung & Mangasarian.

    Class 0 is N((0, 0), 3^2 I), class 1 N((0, -5.8), .3^2 I). A plain proximal machine all but ignores the small
    class; balancing finds it at the price of the large class's edge; the Newton refinement mends both.

    Parameters
    ----------
    n_samples : tuple of two int, default=(85, 15)
        Sizes of the classes, which are also their prior proportions.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        As of :func:`make_competing_interval`.

    Examples
    --------
    >>> from polymargin.datasets import make_unbalanced_pair
    >>> sample = make_unbalanced_pair(random_state=0)
    >>> sample.data.shape, round(sample.bayes_error, 3)
    ((100, 2), 0.008)
    """
    sizes = check_class_sizes(n_samples, 2)
    shapes = (round_gaussian((0.0, 0.0), 3.0), round_gaussian((0.0, -5.8), 0.3))
    population = PlanarClasses(shapes, proportions(sizes))
    return simulate(population, sizes, random_state, "After Fung & Mangasarian, Figures 2 to 4.")


def make_unbalanced_rings(n_samples: tuple[int, int, int] = (400, 50, 50), *, random_state: Any = None) -> Bunch:
    """Draw an outer ring, an inner ring and an ellipse, after Figures 5 and 6 of Fung & Mangasarian.

    Class 0 lies on a ring of radius 4, class 1 on one of radius 2 (both blurred by .4), class 2 is a Gaussian
    ellipse with standard deviations .8 and .4. A plain proximal machine with a smooth Gaussian kernel turns the
    small inner ring into a crescent or loses it; balancing and refinement recover it.

    Parameters
    ----------
    n_samples : tuple of three int, default=(400, 50, 50)
        Sizes of the classes, which are also their prior proportions.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        As of :func:`make_competing_interval`.

    Examples
    --------
    >>> from polymargin.datasets import make_unbalanced_rings
    >>> sample = make_unbalanced_rings(random_state=0)
    >>> sample.data.shape, round(sample.bayes_error, 3)
    ((500, 2), 0.016)
    """
    sizes = check_class_sizes(n_samples, 3)
    shapes = (Ring(4.0, 0.4), Ring(2.0, 0.4), Gaussian((0.0, 0.0), ((0.8, 0.0), (0.0, 0.4))))
    population = PlanarClasses(shapes, proportions(sizes))
    return simulate(population, sizes, random_state, "After Fung & Mangasarian, Figures 5 and 6.")
