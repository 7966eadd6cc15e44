"""A worker that is killed in mid-fit: the fit goes on, and ends where it would have ended."""

import os
import signal

import numpy as np
import pytest

from polymargin import MulticategorySVC, ProximalSVC
from polymargin.distributed._blocks import DaskBlocks
from tests.distributed.samples import chunked, fresh, make_sample


def kill_one_worker_at_round(n, client, monkeypatch):
    """Send SIGKILL to the worker process that holds most, when the n-th round begins."""
    rounds, pids = [], client.run(os.getpid)
    plain = DaskBlocks._fetch

    def fetch(blocks):
        rounds.append(len(rounds))
        if len(rounds) == n:
            held = client.run(lambda dask_worker: len(dask_worker.data))
            os.kill(pids[max(held, key=held.get)], signal.SIGKILL)
        return plain(blocks)

    monkeypatch.setattr(DaskBlocks, "_fetch", fetch)
    return rounds, pids


def test_fits_survive_a_killed_worker(client, monkeypatch):
    X, y, weights = make_sample()
    chunks = (150, 0, 100, 150)
    for machine, n in ((ProximalSVC(C=2.0), 3), (MulticategorySVC(kernel="linear", tol=1e-4), 12)):
        with client.as_current(), monkeypatch.context() as patch:
            rounds, pids = kill_one_worker_at_round(n, client, patch)
            model = fresh(machine).fit(*chunked(X, y, weights, chunks=chunks))
        assert len(rounds) > n
        client.wait_for_workers(2)  # the dead one's nanny has started another
        assert set(client.run(os.getpid).values()) != set(pids.values())
        undisturbed = fresh(machine).fit(*chunked(X, y, weights, chunks=chunks))
        np.testing.assert_allclose(model.coef_, undisturbed.coef_, rtol=0, atol=1e-8 * np.abs(model.coef_).max())
        assert model.certificate_.primal == pytest.approx(undisturbed.certificate_.primal, rel=1e-9)
