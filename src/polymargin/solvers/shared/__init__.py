"""The machines that share structure: alternating steps over base classifiers and class relations."""
