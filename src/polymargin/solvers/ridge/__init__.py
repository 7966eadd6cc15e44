"""The proximal machines: linear systems, their paths, left-out scores and refinement."""
