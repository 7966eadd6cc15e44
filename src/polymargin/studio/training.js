/* Training with live progress, and its end. */

import { byId, figure, get, list, post, Refused } from "/api.js";
import { plan } from "/columns.js";

const WAIT = 300;
let running = null;

export function offerTraining(whenDone) {
  byId("training-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running !== null || byId("train").disabled) return;
    try {
      follow(await post("/api/train", plan()), whenDone);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      byId("progress").hidden = false;
      byId("progress-words").textContent = "Not begun.";
      list(byId("run-problems"), error.problems);
    }
  });
  byId("cancel").addEventListener("click", async () => {
    if (running === null) return;
    byId("cancel").disabled = true;
    await post(`/api/runs/${running}/cancel`);
  });
}

/* Go on with what is under way, where the page was loaded again. */
export async function followAgain(whenDone) {
  const runs = await get("/api/runs");
  const last = runs.at(-1);
  if (last && last.state === "running") follow(await get(`/api/runs/${last.number}`), whenDone);
  return runs;
}

async function follow(progress, whenDone) {
  running = progress.number;
  byId("train").disabled = true;
  byId("cancel").disabled = false;
  byId("progress").hidden = false;
  try {
    while (progress.state === "running") {
      show(progress);
      await new Promise((resume) => setTimeout(resume, WAIT));
      progress = await get(`/api/runs/${running}`);
    }
    show(progress);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    list(byId("run-problems"), error.problems);
  } finally {
    running = null;
    byId("train").disabled = false;
    byId("train").textContent = "Train again";
    byId("cancel").disabled = true;
  }
  await whenDone(progress);
}

const WORDS = {
  running: (p) => `Training: ${p.seconds.toFixed(0)} s of ${p.budget.toFixed(0)} s`,
  done: (p) => `Done after ${p.seconds.toFixed(1)} s.`,
  ended: (p) => `Ended by you after ${p.seconds.toFixed(1)} s; the best model so far is kept where there was one.`,
  failed: (p) => `Failed after ${p.seconds.toFixed(1)} s.`,
};

function show(progress) {
  const rows = progress.rows ? `, on ${progress.rows.toLocaleString("en")} rows each` : "";
  byId("progress-words").textContent = WORDS[progress.state](progress);
  byId("progress-bar").value = progress.state === "running" ? Math.min(progress.seconds / progress.budget, 1) : 1;
  byId("objective").textContent = figure(progress.objective, 6);
  byId("gap").textContent = progress.gap === null ? "–" : progress.gap.toExponential(1);
  byId("tried").textContent = `${progress.tried}${rows}`;
  byId("best").textContent = figure(progress.best);
  list(byId("run-problems"), progress.problem ? [progress.problem] : []);
}
