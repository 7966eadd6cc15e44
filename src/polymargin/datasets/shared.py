"""The five-class plane after Vural, Fung, Rosales & Dy (2009), Figure 1."""

from typing import Any

from sklearn.utils import Bunch

from polymargin.checks import check_integer
from polymargin.datasets._population import simulate
from polymargin.datasets.planar import Gaussian, PlanarClasses, round_gaussian

_TILTED = ((1.2, 0.0), (0.6, 0.5))
_MIRRORED = ((1.2, 0.0), (-0.6, 0.5))
_RELATED = PlanarClasses(
    (
        Gaussian((-4.0, 2.0), _TILTED),
        Gaussian((-3.4, 0.2), _TILTED),
        Gaussian((3.4, 2.0), _MIRRORED),
        Gaussian((4.0, 3.8), _MIRRORED),
        round_gaussian((0.0, -6.0), 0.7),
    ),
    (0.2,) * 5,
)


def make_related_classes(n_samples: int = 250, *, random_state: Any = None) -> Bunch:
    """Draw five classes in the plane, after Figure 1 of Vural et al. (2009): two related pairs and a stranger.

    Classes 0 and 1 are neighbours of the same shape, so are classes 2 and 3, and class 4 lies far from all. The
    paper shows a picture only; the distributions are ours: four Gaussians N(mu, SS') with S = (1.2, 0; +-.6, .5)
    and one N((0, -6), .7^2 I), of equal probability.

    Parameters
    ----------
    n_samples : int, default=250
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        As of :func:`make_competing_interval`.

    Examples
    --------
    >>> from polymargin.datasets import make_related_classes
    >>> sample = make_related_classes(random_state=0)
    >>> sample.data.shape, round(sample.bayes_error, 3)
    ((250, 2), 0.014)
    """
    n_samples = check_integer("n_samples", n_samples, at_least=1)
    return simulate(_RELATED, n_samples, random_state, "After Vural, Fung, Rosales & Dy (2009), Figure 1.")
