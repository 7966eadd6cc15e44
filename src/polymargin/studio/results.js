/* What came of a run: summary, report, variables, predictions, code. */

import { byId, download, element, figure, get, Refused, save, text } from "/api.js";

const TABS = ["summary", "report", "variables", "predictions", "code"];
let run = null;
let summary = null;
let variables = null;
let report = "";
let stem = "data";
const shown = { offset: 0, sort: null, descending: false, total: 0, page: 50 };

export function offerResults(fileName) {
  stem = fileName.replace(/\.[^.]*$/, "");
  for (const name of TABS) {
    byId(`tab-${name}`).addEventListener("click", () => openTab(name));
    byId(`tab-${name}`).addEventListener("keydown", moveBetweenTabs);
  }
  byId("save-model").addEventListener("click", guarded(() => download(`/api/runs/${run}/model`, `${stem}.skops`)));
  byId("save-report").addEventListener("click", () => save(report, `${stem}-report.html`, "text/html"));
  byId("save-costs").addEventListener("click", guarded(() => download(`/api/runs/${run}/costs`, "costs.csv")));
  byId("save-script").addEventListener("click", () => save(summary.script, `${stem}.py`, "text/x-python"));
  byId("save-variables").addEventListener("click", () => save(variablesAsCsv(), `${stem}-variables.csv`, "text/csv"));
  byId("variables-search").addEventListener("input", showVariables);
  for (const button of document.querySelectorAll("[data-export]"))
    button.addEventListener("click", guarded(() => exportAs(button.dataset.export)));
  for (const button of document.querySelectorAll("[data-copy]"))
    button.addEventListener("click", () => copy(button.dataset.copy));
  for (const [id, event] of [["predictions-search", "input"], ["only-held-out", "change"], ["only-wrong", "change"]])
    byId(id).addEventListener(event, () => turnTo(0));
  byId("previous").addEventListener("click", () => turnTo(shown.offset - shown.page));
  byId("next").addEventListener("click", () => turnTo(shown.offset + shown.page));
}

/* What fails is said where everybody sees it. */
function guarded(action) {
  return async () => {
    try {
      await action();
      byId("trouble").textContent = "";
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      byId("trouble").textContent = error.message;
    }
  };
}

const exportAs = (kind) =>
  download(`/api/runs/${run}/export/${kind}`, `${stem}-predictions.${kind === "excel" ? "xlsx" : kind}`);

export async function showRuns(chosen) {
  const runs = (await get("/api/runs")).filter((one) => one.error !== undefined);
  if (!runs.length) return;
  byId("results").hidden = false;
  byId("runs-table").tBodies[0].replaceChildren(
    ...runs.map((one) => {
      const open = element("button", { type: "button" }, `Run ${one.number}`);
      open.addEventListener("click", () => openRun(one.number));
      return element(
        "tr",
        { "data-run": one.number },
        element("th", { scope: "row" }, open),
        element("td", {}, one.method),
        element("td", {}, (one.settings ?? "") + (one.state === "ended" ? " (ended early)" : "")),
        element("td", {}, one.costs ? "edited" : "equal"),
        element("td", { class: "number" }, figure(one.error)),
        element("td", { class: "number" }, figure(one.cost)),
      );
    }),
  );
  const wanted = runs.find((one) => one.number === chosen) ?? runs.at(-1);
  await openRun(wanted.number);
}

/* The page says that it is busy until everything shown is of this run; a run opened meanwhile takes over. */
async function openRun(number) {
  run = number;
  [variables, report] = [null, ""];
  Object.assign(shown, { offset: 0, sort: null, descending: false });
  for (const row of byId("runs-table").tBodies[0].rows) row.setAttribute("aria-current", String(row.dataset.run === String(run)));
  byId("results").setAttribute("aria-busy", "true");
  try {
    const opened = await get(`/api/runs/${number}/summary`);
    if (run !== number) return;
    summary = opened;
    showSummary();
    byId("command").textContent = summary.command;
    byId("script").textContent = summary.script;
    const selected = TABS.find((name) => byId(`tab-${name}`).getAttribute("aria-selected") === "true");
    await openTab(selected ?? "summary");
  } finally {
    if (run === number) byId("results").setAttribute("aria-busy", "false");
  }
}

async function openTab(name) {
  for (const other of TABS) {
    const tab = byId(`tab-${other}`);
    tab.setAttribute("aria-selected", String(other === name));
    tab.tabIndex = other === name ? 0 : -1;
    byId(`panel-${other}`).hidden = other !== name;
  }
  const fill = { report: openReport, variables: openVariables, predictions: () => turnTo(0) }[name];
  if (fill) await guarded(fill)();
}

function moveBetweenTabs(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const at = TABS.findIndex((name) => event.target.id === `tab-${name}`);
  const name = TABS[(at + step + TABS.length) % TABS.length];
  byId(`tab-${name}`).focus();
  openTab(name);
  event.preventDefault();
}

function showSummary() {
  byId("summary-lines").replaceChildren(
    ...[...summary.lines, ["settings", summary.settings ?? "–"]].map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
  fillTable(byId("by-class"), ["class", "rows", "predicted", "precision", "recall"],
    summary.by_class.map((one) => [one.class, one.rows, one.predicted, one.precision, one.recall]));
  const table = byId("confusion");
  fillTable(table, ["true", ...summary.classes], summary.confusion.map((row, i) => [summary.classes[i], ...row]));
  summary.confusion.forEach((row, i) => row.forEach((count, j) => {
    const cell = table.tBodies[0].rows[i].cells[j + 1];
    const total = row.reduce((sum, one) => sum + one, 0) || 1;
    cell.className = `number ${i === j ? "right" : count ? "wrong" : "none"}`;
    cell.style.setProperty("--strength", count / total);
  }));
}

/* Rows of text and numbers; the first column is the heading of its row. */
function fillTable(table, heads, rows, { sortable = null, mark = () => "" } = {}) {
  const isNumber = heads.map((_, j) => rows.some((row) => typeof row[j] === "number"));
  table.tHead.replaceChildren(element("tr", {}, ...heads.map((head, j) => {
    const cell = element("th", { scope: "col", class: isNumber[j] ? "number" : "" });
    if (!sortable) cell.append(head);
    else {
      const order = shown.sort === head ? (shown.descending ? "descending" : "ascending") : "none";
      cell.setAttribute("aria-sort", order);
      cell.append(element("button", { type: "button", onclick: () => sortable(head) }, head));
    }
    return cell;
  })));
  table.tBodies[0].replaceChildren(...rows.map((row) => element("tr", {}, ...row.map((value, j) =>
    element(j ? "td" : "th", { scope: j ? null : "row", class: `${typeof value === "number" ? "number " : ""}${mark(row, j)}` },
      typeof value === "number" ? figure(value) : (value ?? "–"))))));
}

async function openReport() {
  if (!report) {
    report = await text(`/api/runs/${run}/report`);
    byId("report-frame").srcdoc = report;
  }
}

async function openVariables() {
  if (!variables) {
    byId("variables-meaning").textContent = "…";
    variables = await get(`/api/runs/${run}/variables`);
  }
  byId("variables-meaning").textContent = variables.meaning;
  showVariables();
}

function showVariables() {
  const words = byId("variables-search").value.toLowerCase();
  const rows = variables.rows.filter((row) => row[0].toLowerCase().includes(words));
  fillTable(byId("variables-table"), variables.columns, rows.slice(0, 500));
  byId("variables-shown").textContent = `${Math.min(rows.length, 500)} of ${variables.rows.length} variables`;
}

function variablesAsCsv() {
  const cell = (value) => (/[",\n]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  return [variables.columns, ...variables.rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

let turned = 0;

async function turnTo(offset) {
  const number = ++turned;
  const asked = new URLSearchParams({
    offset: Math.max(offset, 0),
    descending: shown.descending ? 1 : 0,
    wrong: byId("only-wrong").checked ? 1 : 0,
    held_out: byId("only-held-out").checked ? 1 : 0,
    text: byId("predictions-search").value,
  });
  if (shown.sort) asked.set("sort", shown.sort);
  const page = await get(`/api/runs/${run}/predictions?${asked}`);
  if (number !== turned) return;
  Object.assign(shown, { offset: page.offset, total: page.total, page: page.page });
  const predicted = page.columns.indexOf("prediction");
  const truth = page.columns.indexOf(page.true);
  fillTable(byId("predictions-table"), page.columns, page.rows, {
    sortable: sortBy,
    mark: (row, j) => (j === predicted && row[predicted] !== row[truth] ? "wrong" : ""),
  });
  const last = page.offset + page.rows.length;
  byId("predictions-shown").textContent = page.total ? `rows ${page.offset + 1} to ${last} of ${page.total}` : "no such row";
  byId("previous").disabled = page.offset === 0;
  byId("next").disabled = last >= page.total;
}

function sortBy(column) {
  shown.descending = shown.sort === column && !shown.descending;
  shown.sort = column;
  turnTo(0);
}

async function copy(id) {
  try {
    await navigator.clipboard.writeText(byId(id).textContent);
    byId("copied").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(byId(id));
    byId("copied").textContent = "Selected: copy it with Ctrl-C.";
  }
}
