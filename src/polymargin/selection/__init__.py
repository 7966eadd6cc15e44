"""Searches over hyper-parameters, criteria for them, and rejection."""
