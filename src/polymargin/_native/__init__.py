"""Every compiled loop of the package; called by :mod:`polymargin.solvers` and :mod:`polymargin.gram` alone."""
