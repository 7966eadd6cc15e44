"""
Finding wrong labels
====================

One label in ten of the digits is replaced by a random other one. A truncated machine gives up on rows that
contradict the rest; these are the rows of ``suspect_labels_``. Printed are how many of them are wrong (precision),
how many of the wrong ones they are (recall), and the accuracy on clean labels beside that of a hinge-trained SVC.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from polymargin import RobustSVC
from polymargin.datasets import flip_labels
from polymargin.inspection import LabelNoiseDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, train_size=600, random_state=0, stratify=y)
noisy = flip_labels(y_train, 0.1, random_state=0)
wrong = noisy != y_train

model = RobustSVC(kernel="rbf").fit(X_train, noisy)
suspects = np.isin(np.arange(len(noisy)), model.suspect_labels_)
print(f"precision {wrong[suspects].mean():.3f}, recall {suspects[wrong].mean():.3f} of the suspects")
hinge = SVC().fit(X_train, noisy)
print(f"test accuracy: robust {model.score(X_test, y_test):.3f}, SVC {hinge.score(X_test, y_test):.3f}")
LabelNoiseDisplay.from_estimator(model, known=wrong)

plt.show()
