"""How problems are solved: one algorithm a file, a problem in, a Solution out; no scikit-learn, no printing."""
