"""
What a fitted model looks like
==============================

Every display is made by ``from_estimator`` (a path: ``from_path``), draws on the axes it is given, and says in
words what it shows (``description``). The wines of three cultivars, half of them held out.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from polymargin import MarginSearch, MulticategorySVC, RejectOptionClassifier, SparseSVC, SparseSVCCV, sparse_path
from polymargin.inspection import (
    CoefficientPathDisplay,
    CriterionPathDisplay,
    CriterionSurfaceDisplay,
    DecisionVectorDisplay,
    RiskCoverageDisplay,
    SeparationMapDisplay,
)

wine = load_wine(as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(
    wine.data, wine.target, test_size=0.5, stratify=wine.target, random_state=0
)
scaler = StandardScaler().set_output(transform="pandas").fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# %%
# Decision vectors
# ----------------
# The scores of every class for the held-out wines, and the loss of the predicted class (Figure 4 of Lee, Lin &
# Wahba). Predictions above the dotted line are too weak to be trusted.
careful = RejectOptionClassifier(MulticategorySVC()).fit(X_train, y_train)
vectors = DecisionVectorDisplay.from_estimator(careful, X_test, y_test)
print(vectors.description)

# %%
# How many errors remain among the strongest predictions:
curve = RiskCoverageDisplay.from_estimator(careful, X_test, y_test)
print(curve.description)

# %%
# Which variable separates which cultivars
# ----------------------------------------
model = SparseSVC(C=0.1).fit(X_train, y_train)
separations = SeparationMapDisplay.from_estimator(model)
print(separations.description)

# %%
# and how the coefficients enter as C grows:
CoefficientPathDisplay.from_path(sparse_path(X_train, y_train, n_Cs=30), max_variables=6)

# %%
# How parameters were chosen
# --------------------------
# A search over two parameters is a surface, one over C alone a path.
search = MarginSearch(exhaustive=True).fit(X_train, y_train)
surface = CriterionSurfaceDisplay.from_estimator(search)
print(surface.description)

# %%
tuned = SparseSVCCV(n_Cs=15).fit(X_train, y_train)
path = CriterionPathDisplay.from_estimator(tuned)
print(path.description)
plt.show()
