/* The page: with a token it opens the file, without one it asks for it. */

import { byId, Refused, setToken, takeToken } from "/api.js";
import { openFile } from "/columns.js";
import { offerResults, showRuns } from "/results.js";
import { followAgain, offerTraining } from "/training.js";

const finished = (progress) => showRuns(progress.number);

async function begin() {
  try {
    await openFile();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    byId("trouble").textContent = error.message;
    byId("token-form").hidden = error.status !== 401;
    byId("file").textContent = "Not opened";
    return;
  }
  byId("trouble").textContent = "";
  byId("token-form").hidden = true;
  byId("work").hidden = false;
  offerResults(byId("file").textContent);
  offerTraining(finished);
  const runs = await followAgain(finished);
  if (runs.length) await showRuns();
  byId("work").setAttribute("aria-busy", "false");
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token").value);
  begin();
});

takeToken();
begin();
