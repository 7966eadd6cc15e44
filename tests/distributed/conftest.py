"""Schedulers to run on: threads, and a cluster of two worker processes that is started once."""

import logging
import warnings

import dask
import pytest


@pytest.fixture(scope="session")
def client():
    """Return a client of a cluster of two worker processes."""
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        # sockets of workers that die, or that the interpreter closes last, are not of interest here
        warnings.simplefilter("ignore", ResourceWarning)
        cluster = LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any free port: other processes may run clusters of their own
            silence_logs=logging.CRITICAL,
        )
        client = Client(cluster, set_as_default=False)
        yield client
        client.close()
        cluster.close()


@pytest.fixture(params=["threads", "processes"])
def scheduler(request):
    """Run a test on threads, then on the cluster."""
    if request.param == "threads":
        with dask.config.set(scheduler="threads"):
            yield None
    else:
        client = request.getfixturevalue("client")
        with client.as_current():
            yield client


@pytest.fixture
def threads():
    """Run a test on threads alone."""
    with dask.config.set(scheduler="threads"):
        yield
