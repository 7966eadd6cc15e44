"""Stored fits of every estimator: what a change of the solvers must not change."""
