"""
A million rows, as a stream
===========================

`ProximalSVC` needs its rows only through sums over them. A million rows can therefore arrive in chunks, once,
and the model is the same, to rounding, as that of one fit to all of them; rows that turn out to be wrong can
be taken out again, exactly. The time of a chunk does not grow with what came before it.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from polymargin import ProximalSVC

N_CHUNKS, CHUNK, P, K = 20, 50_000, 20, 5
rng = np.random.default_rng(0)
centres = rng.normal(size=(K, P)) / 2


def draw_chunk(seed: int, n: int = CHUNK) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of five Gaussian classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    return centres[y] + rng.normal(size=(n, P)), y


X_test, y_test = draw_chunk(10_000, n=20_000)
model = ProximalSVC(refine=False)
seconds, accuracy = [], []
for at in range(N_CHUNKS):
    X, y = draw_chunk(at)
    started = time.process_time()
    model.partial_fit(X, y, classes=np.arange(K))
    seconds.append(time.process_time() - started)
    accuracy.append(model.score(X_test, y_test))

# %%
# The last chunk turns out to be bad. Forgetting it gives the model that never saw it.
before = ProximalSVC(refine=False)
for at in range(N_CHUNKS - 1):
    before.partial_fit(*draw_chunk(at), classes=np.arange(K))
model.forget(*draw_chunk(N_CHUNKS - 1))
print(f"largest difference after forgetting: {np.abs(model.coef_ - before.coef_).max():.1e}")
print(f"certified residual of the linear systems: {model.certificate_.gap:.1e}")

# %%
rows = CHUNK * np.arange(1, N_CHUNKS + 1)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.plot(rows, np.array(seconds) / np.median(seconds), marker="o")
left.set(xlabel="rows seen", ylabel="CPU time of the chunk / median", ylim=(0, None))
right.plot(rows, accuracy, marker="o")
right.set(xlabel="rows seen", ylabel="test accuracy")
plt.show()
