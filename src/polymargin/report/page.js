"use strict";

/* The cost explorer and the tables of a Polymargin report. Everything they need is in the page. */

const data = JSON.parse(document.getElementById("report-data").textContent);
const k = data.classes.length;

function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

const probabilities = numbers(data.probabilities);
const tableProbabilities = numbers(data.tableProbabilities);

/* The Bayes rule (4) of Lee, Lin & Wahba: the class of least expected cost, the first of equals. */
function decide(costs, stored) {
  const decisions = new Int32Array(stored.length / k);
  for (let row = 0; row < decisions.length; row++) {
    let least = Infinity;
    for (let j = 0; j < k; j++) {
      let expected = 0;
      for (let l = 0; l < k; l++) expected += costs[l][j] * stored[row * k + l];
      if (expected < least) {
        least = expected;
        decisions[row] = j;
      }
    }
  }
  return decisions;
}

/* Where the rule decides as it does at the costs given, the model's own decision stands: nothing changes by itself. */
function decisionsUnder(costs, stored, predicted) {
  const given = decide(data.costs, stored);
  return decide(costs, stored).map((decision, row) =>
    decision === given[row] && predicted[row] >= 0 ? predicted[row] : decision);
}

function confusionOf(decisions) {
  const table = data.classes.map(() => new Array(k).fill(0));
  decisions.forEach((decision, row) => (table[data.labels[row]][decision] += 1));
  return table;
}

/* Mean cost of decisions; rejected rows (-1) do not count. */
function meanCost(costs, decisions) {
  let total = 0;
  let counted = 0;
  decisions.forEach((decision, row) => {
    if (decision < 0) return;
    total += costs[data.labels[row]][decision];
    counted += 1;
  });
  return counted ? total / counted : 0;
}

const text = (value) => String(Number(value.toPrecision(4)));

/* Hand a table to the person as a file; texts are quoted, numbers are not. */
function saveCsv(name, lines) {
  const quote = (value) => (typeof value === "number" ? value : `"${value.replaceAll('"', '""')}"`);
  const content = lines.map((line) => line.map(quote).join(",")).join("\n") + "\n";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function show(id, value, words) {
  const output = document.getElementById(id);
  output.textContent = words === undefined ? text(value) : words;
  output.dataset.value = value;
}

function showClass(element, name, colour) {
  const label = document.createElement("span");
  label.className = "class";
  label.style.setProperty("--class", colour);
  label.textContent = name;
  element.replaceChildren(label);
}

/* The cost explorer */

const form = document.getElementById("cost-form");
const inputs = [...form.querySelectorAll("input[data-cost]")];
const problem = document.getElementById("cost-problem");
const cells = [...document.querySelectorAll("#explored [data-cell]")];
const editedCells = [...document.querySelectorAll("#predictions-table td.edited")];
const atStart = decisionsUnder(data.costs, probabilities, data.predicted);
const confusionAtStart = confusionOf(atStart);
const place = (attribute) => attribute.split(",").map(Number);

/* The costs in the form, or null where one of them is none. */
function readCosts() {
  const costs = data.classes.map(() => new Array(k).fill(0));
  let valid = true;
  for (const input of inputs) {
    const [i, j] = place(input.dataset.cost);
    const value = input.value.trim() === "" ? NaN : Number(input.value);
    const right = Number.isFinite(value) && value >= 0;
    input.setAttribute("aria-invalid", String(!right));
    input.classList.toggle("edited", right && value !== data.costs[i][j]);
    costs[i][j] = value;
    valid &&= right;
  }
  problem.textContent = valid ? "" : "A cost must be a number of at least 0; what is shown is for the last valid costs.";
  return valid ? costs : null;
}

function showConfusion(confusion) {
  const totals = confusion.map((row) => row.reduce((sum, count) => sum + count, 0) || 1);
  for (const cell of cells) {
    const [i, j] = place(cell.dataset.cell);
    const count = confusion[i][j];
    const change = count - confusionAtStart[i][j];
    const shown = document.createElement("b");
    shown.textContent = count.toLocaleString("en");
    const remark = document.createElement("small");
    if (change) remark.textContent = (change < 0 ? "−" : "+") + Math.abs(change).toLocaleString("en");
    cell.replaceChildren(remark, " ", shown);
    cell.dataset.value = count;
    cell.className = count ? (i === j ? "right" : "wrong") : "none";
    cell.style.setProperty("--strength", (count / totals[i]).toFixed(3));
  }
}

function explore() {
  const costs = readCosts();
  if (costs === null) return;
  const decisions = decisionsUnder(costs, probabilities, data.predicted);
  const n = decisions.length;
  const errors = decisions.reduce((sum, decision, row) => sum + (decision !== data.labels[row]), 0);
  const changed = decisions.reduce((sum, decision, row) => sum + (decision !== atStart[row]), 0);
  showConfusion(confusionOf(decisions));
  show("explored-cost", meanCost(costs, decisions));
  show("model-cost", meanCost(costs, data.predicted));
  show("explored-errors", errors, `${((100 * errors) / n).toFixed(1)}%`);
  show("explored-changes", changed, changed.toLocaleString("en"));
  document.getElementById("python-costs").textContent = `[${costs.map((row) => `[${row.join(", ")}]`).join(", ")}]`;
  const listed = decisionsUnder(costs, tableProbabilities, data.tablePredicted);
  for (const cell of editedCells) {
    const row = Number(cell.dataset.place);
    showClass(cell, data.classes[listed[row]], data.colours[listed[row]]);
    cell.classList.toggle("changed", listed[row] !== data.tablePredicted[row]);
  }
}

form.addEventListener("input", explore);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(explore));
document.getElementById("equal-costs").addEventListener("click", () => {
  for (const input of inputs) input.value = "1";
  explore();
});
document.getElementById("save-costs").addEventListener("click", () => {
  const costs = readCosts();
  if (costs === null) return;
  saveCsv("costs.csv", [["", ...data.classes], ...costs.map((row, i) => [data.classes[i], ...row])]);
});
explore();

/* Tables that sort by every column */

const collator = new Intl.Collator("en", { numeric: true });

function valueOf(row, column, kind) {
  const cell = row.cells[column];
  if (kind !== "number") return cell.textContent;
  return cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
}

/* Numbers by size, those that are missing last; text as people order it. */
function compare(a, b, direction) {
  if (typeof a === "string") return direction * collator.compare(a, b);
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return direction * (a - b);
}

function makeSortable(table) {
  const rows = [...table.tBodies[0].rows];
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      const ascending = header.getAttribute("aria-sort") !== "ascending";
      headers.forEach((other) => other.setAttribute("aria-sort", "none"));
      header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const keyed = rows.map((row) => [valueOf(row, column, header.dataset.kind), row]);
      keyed.sort((a, b) => compare(a[0], b[0], ascending ? 1 : -1));
      table.tBodies[0].append(...keyed.map((pair) => pair[1]));
    });
  });
}
document.querySelectorAll("table.sortable").forEach(makeSortable);

/* Show the rows that are wanted, and say how many they are. */
function filterRows(table, wanted, status, noun) {
  const rows = [...table.tBodies[0].rows];
  for (const row of rows) row.hidden = !wanted(row);
  const visible = rows.filter((row) => !row.hidden).length;
  status.textContent = `${visible.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${noun}`;
}

/* The table of predictions */

const onlyWrong = document.getElementById("only-wrong");
function filterPredictions() {
  filterRows(document.getElementById("predictions-table"), (row) => !onlyWrong.checked || "wrong" in row.dataset,
    document.getElementById("shown-rows"), "rows");
}
onlyWrong.addEventListener("change", filterPredictions);
filterPredictions();

/* The table of variables, which some models have */

const variables = document.getElementById("variables-table");
if (variables !== null) {
  const search = document.getElementById("find-variable");
  const filterVariables = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    filterRows(variables, (row) => words.every((word) => row.textContent.toLowerCase().includes(word)),
      document.getElementById("found-variables"), "variables");
  };
  search.addEventListener("input", filterVariables);
  filterVariables();
  document.getElementById("save-variables").addEventListener("click", () => {
    const shown = [...variables.tBodies[0].rows].filter((row) => !row.hidden);
    saveCsv("variables.csv", [variables.tHead.rows[0], ...shown].map((row) =>
      [...row.cells].map((cell) => ("value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent))));
  });
}
