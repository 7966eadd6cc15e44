"""The same models on Dask collections: the only place that imports Dask."""
