"""Tidy tables and matplotlib displays of fitted models."""
