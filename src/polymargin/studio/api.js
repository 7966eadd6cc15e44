/* Talking to the studio: every request carries the token, which no other page knows. */

const KEY = "polymargin-token";

/* The token comes behind # once, and is then kept for this tab alone. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY);
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token.trim());
}

export class Refused extends Error {
  constructor(status, problems) {
    super(problems.join(" "));
    this.status = status;
    this.problems = problems;
  }
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, {
      ...options,
      headers: { ...options.headers, "X-Polymargin-Token": sessionStorage.getItem(KEY) ?? "" },
    });
  } catch {
    throw new Refused(0, ["The studio does not answer: was it ended in the terminal?"]);
  }
  if (!response.ok) {
    const text = await response.text();
    let problems = [text];
    try {
      problems = JSON.parse(text).problems;
    } catch {
      /* plain words */
    }
    throw new Refused(response.status, problems);
  }
  return response;
}

export const get = async (path) => (await ask(path)).json();

export const text = async (path) => (await ask(path)).text();

export const post = async (path, body = {}) =>
  (await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();

export function save(content, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export async function download(path, name) {
  save(await (await ask(path)).blob(), name);
}

/* Small helpers: what comes from the file is only ever put into the page as text. */

export const byId = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.map((child) => (child === null || child === undefined ? "" : child)));
  return made;
}

export function list(target, problems, remarks = []) {
  target.replaceChildren(
    ...problems.map((problem) => element("li", {}, problem)),
    ...remarks.map((remark) => element("li", { class: "remark" }, remark)),
  );
}

export const figure = (value, digits = 4) =>
  value === null || value === undefined ? "–" : String(Number(value.toPrecision(digits)));
