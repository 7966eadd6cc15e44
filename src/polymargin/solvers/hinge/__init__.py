"""The hinge machines: methods on kernels and on features, and what they share."""
