from __future__ import annotations

import warnings

import pytest

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="package")
def cluster():
    """A cluster of two workers within this process."""
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inner = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
        with inner, Client(inner) as client:
            yield client
