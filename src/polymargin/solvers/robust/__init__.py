"""The robust machines: the DC algorithm and its convex steps."""
