/* The columns of the file, the target and the costs: what the person wants, as a plan. */

import { byId, element, get, list, post, Refused } from "/api.js";

const USES = ["number", "category", "leave out"];
let file = { columns: [], targets: [] };
let classes = [];

export async function openFile() {
  showFile(await get("/api/overview"));
  byId("target").addEventListener("change", () => {
    classes = [];
    showColumns();
    check();
  });
  byId("impute").addEventListener("change", check);
  byId("equal-costs").addEventListener("click", showCosts);
  byId("reading-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    given.na = given.na ? [given.na] : [];
    showFile(await post("/api/reading", given));
  });
}

function showFile(overview) {
  file = overview;
  byId("file").textContent = file.file;
  document.title = `${file.file} – Polymargin studio`;
  const n = file.columns.length || file.features;
  byId("size").textContent = file.rows ? `${file.rows.toLocaleString("en")} rows, ${n} columns` : "";
  list(byId("file-problems"), file.problems, [...(file.assumed ?? []).map((what) => `read with ${what}`), ...file.notes]);
  byId("reading").open = file.problems.length > 0;
  const troubled = file.columns.filter((column) => column.problems.length).length;
  byId("columns-lead").textContent = file.columns.length
    ? `${troubled ? `${troubled} of ${n} columns need a look` : `All ${n} columns can be used`}; choose what each is used as.`
    : file.features
      ? "The columns of a LIBSVM file have no names; all are numbers."
      : "The file cannot be read in this way.";
  byId("target").replaceChildren(
    ...file.targets.map((name) => element("option", { value: name }, name)),
    ...file.columns
      .filter((column) => !file.targets.includes(column.name))
      .map((column) => element("option", { value: column.name }, column.name)),
  );
  byId("method").replaceChildren(...file.methods.map((name) => element("option", { value: name }, name)));
  for (const column of file.columns) column.chosen = column.use;
  classes = [];
  showColumns();
  check();
}

function showColumns() {
  const target = byId("target").value;
  byId("columns-table").tBodies[0].replaceChildren(...file.columns.map((column) => row(column, column.name === target)));
}

function row(column, isTarget) {
  const choose = element(
    "select",
    { "aria-label": `Use ${column.name} as`, "data-column": column.name },
    ...USES.map((use) => element("option", { value: use, selected: use === column.chosen }, use)),
  );
  choose.addEventListener("change", () => {
    column.chosen = choose.value;
    line.className = column.chosen === "leave out" ? "left-out" : "";
    check();
  });
  const problems = isTarget ? [] : column.problems.map((problem) => element("span", { class: "problem" }, problem));
  const line = element(
    "tr",
    { class: !isTarget && column.chosen === "leave out" ? "left-out" : "" },
    element("th", { scope: "row" }, column.name),
    element("td", {}, isTarget ? "the classes" : choose),
    element("td", {}, column.values, ...problems),
    element("td", { class: "number" }, String(column.distinct)),
    element("td", { class: "number" }, String(column.missing)),
  );
  return line;
}

/* The plan as the server takes it. */
export function plan() {
  const target = byId("target").value || null;
  const others = file.columns.filter((column) => column.name !== target);
  const named = (test) => others.filter(test).map((column) => column.name);
  return {
    target,
    drop: named((column) => column.chosen === "leave out"),
    categorical: named((column) => column.chosen === "category" && column.use !== "category"),
    numeric: named((column) => column.chosen === "number" && column.use !== "number"),
    impute: byId("impute").checked,
    method: byId("method").value,
    budget: byId("budget").value.trim(),
    share: Number(byId("share").value) / 100,
    costs: readCosts(),
  };
}

let asked = 0;

export async function check() {
  const number = ++asked;
  if (file.problems.length) return;
  let answer;
  try {
    answer = await post("/api/check", { ...plan(), costs: null });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    answer = { problems: error.problems, classes };
  }
  if (number !== asked) return; // somebody has chosen otherwise meanwhile
  list(byId("plan-problems"), answer.problems, answer.notes);
  const names = answer.classes.map((one) => one.name);
  if (names.join("\n") !== classes.map((one) => one.name).join("\n")) {
    classes = answer.classes;
    showCosts();
  }
  byId("train").disabled = answer.problems.length > 0;
  if (!answer.problems.length)
    byId("training-lead").textContent =
      `Settings are chosen by cross-validation on ${answer.training.toLocaleString("en")} training rows; ` +
      `${answer.held_out.toLocaleString("en")} others, held out, judge the model.`;
}

function showCosts() {
  const table = byId("costs-table");
  table.classList.toggle("many", classes.length > 6);
  table.tHead.replaceChildren(
    element(
      "tr",
      {},
      element("th", { scope: "col" }, "true class \\ predicted"),
      ...classes.map((one) => element("th", { scope: "col" }, one.name)),
      element("th", { scope: "col" }, "rows"),
    ),
  );
  table.tBodies[0].replaceChildren(
    ...classes.map((one, i) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, one.name),
        ...classes.map((other, j) => element("td", i === j ? { class: "diagonal" } : {}, i === j ? "0" : costField(one, other, i, j))),
        element("td", { class: "number" }, one.rows.toLocaleString("en")),
      ),
    ),
  );
  byId("costs-problem").textContent = "";
}

function costField(one, other, i, j) {
  const field = element("input", {
    type: "number", min: "0", step: "any", value: "1", "data-cost": `${i},${j}`,
    "aria-label": `Cost of predicting ${other.name} for ${one.name}`,
  });
  field.addEventListener("input", () => {
    const value = field.value.trim() === "" ? NaN : Number(field.value);
    const right = Number.isFinite(value) && value >= 0;
    field.setAttribute("aria-invalid", String(!right));
    field.classList.toggle("edited", right && value !== 1);
    byId("costs-problem").textContent = document.querySelector("[data-cost][aria-invalid='true']")
      ? "A cost must be a number of at least 0."
      : "";
  });
  return field;
}

/* The costs that were edited, or null where every error costs 1. */
function readCosts() {
  const costs = classes.map((_, i) => classes.map((__, j) => (i === j ? 0 : 1)));
  let edited = false;
  for (const field of document.querySelectorAll("[data-cost]")) {
    const [i, j] = field.dataset.cost.split(",").map(Number);
    costs[i][j] = field.value.trim() === "" ? NaN : Number(field.value);
    edited ||= costs[i][j] !== 1;
  }
  return edited ? costs : null;
}
