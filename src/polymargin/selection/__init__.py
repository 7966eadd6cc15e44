"""Searches over hyper-parameters, criteria for them, costs as scores, and rejection."""
