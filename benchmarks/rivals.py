"""Machines of R beside ours: kernlab and e1071, each in a process of R, by the seconds that R itself counts."""

import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

SCRIPT = """
given <- commandArgs(trailingOnly = TRUE)
rows <- as.matrix(read.csv(given[1], header = FALSE))
X <- rows[, -1]; y <- factor(rows[, 1])
sigma <- as.numeric(given[2]); C <- as.numeric(given[3]); type <- given[4]
fit <- function() if (type == "e1071") {
  e1071::svm(X, y, scale = FALSE, gamma = sigma, cost = C)
} else {
  kernlab::ksvm(X, y, type = type, kernel = kernlab::rbfdot(sigma = sigma), C = C, scaled = FALSE)
}
suppressMessages(loadNamespace(if (type == "e1071") "e1071" else "kernlab"))
cat(sum(system.time(fit())[1:2]))
"""
RIVALS = {
    "e1071": "e1071",
    "kernlab C-svc": "C-svc",
    "kernlab spoc-svc": "spoc-svc",
    "kernlab kbb-svc": "kbb-svc",
}
"""Names, and the types of R: one-vs-one twice, then the machines of Crammer & Singer and of Weston & Watkins."""


def r_is_here() -> bool:
    """Tell whether R has both packages."""
    if shutil.which("Rscript") is None:
        return False
    asked = 'quit(status = !all(c("kernlab", "e1071") %in% rownames(installed.packages())))'
    return subprocess.run(["Rscript", "-e", asked], capture_output=True, check=False).returncode == 0


def seconds_of_rivals(X: np.ndarray, y: np.ndarray, gamma: float, C: float, limit: int) -> dict[str, float]:
    """Return the seconds of every machine; infinite where R took more than the limit, or failed."""
    with tempfile.TemporaryDirectory() as folder:
        rows, script = Path(folder) / "rows.csv", Path(folder) / "fit.R"
        np.savetxt(rows, np.column_stack([np.unique(y, return_inverse=True)[1], X]), delimiter=",")
        script.write_text(SCRIPT)
        found = {}
        for name, kind in RIVALS.items():
            run = subprocess.run(
                ["Rscript", str(script), str(rows), str(gamma), str(C), kind],
                capture_output=True,
                text=True,
                check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
            )
            found[name] = float(run.stdout.split()[-1]) if run.returncode == 0 else float("inf")
    return found
