// The parts of the dashboard about people and single tasks: workers and their links, classes, skips, comments, a task.
"use strict";

const part = (id) => document.getElementById(id);
const number = (value) => Math.round(value).toLocaleString("en");
const percent = (value, digits = 1) => `${(100 * value).toFixed(digits)}\u00a0%`;
const words = (label) => (Array.isArray(label) ? label.join(", ") || "none" : label);
const cell = (attributes, ...children) => element("td", attributes, ...children);
const range = (low, high, show) => (low === null ? "" : ` (${show(low)} to ${show(high)})`);

function button(name, text, onClick, options = {}) {
  const made = element("button", { type: "button", ...options, "aria-label": name }, text);
  made.addEventListener("click", onClick);
  return made;
}

// A share with its interval, as text and as a bar.
function bar(share, low, high) {
  const at = (value) => 4 + 136 * value;
  const drawn = element("svg", { class: "span", viewBox: "0 0 144 14", "aria-hidden": "true" },
    element("line", { class: "track", x1: at(0), x2: at(1), y1: 7, y2: 7 }),
    element("line", { class: "range", x1: at(low), x2: at(high), y1: 7, y2: 7 }),
    element("circle", { class: "dot", cx: at(share), cy: 7, r: 5 }));
  return element("div", {}, percent(share, 0), element("span", { class: "wide" }, range(low, high, (end) => percent(end, 0))), drawn);
}

function skill(row) {
  if (row.skill === null || row.skill === undefined) return element("span", { class: "soft" }, row.labels + row.skips ? "not known yet" : "has not begun");
  return bar(row.skill, row.low, row.high);
}

async function makeLink(worker) {
  try {
    const made = await ask("/api/workers", { method: "POST", body: { worker } });
    const link = element("code", {}, `${location.origin}/#token=${made.token}`);
    part("added").replaceChildren("The link of ", element("bdi", {}, made.worker), ", shown this once: ", link);
    return true;
  } catch (error) {
    part("added").textContent = error.message;
    return false;
  }
}

function linkOf(row, again) {
  const name = row.worker;
  if (!row.has_link) return [element("span", { class: "soft" }, "revoked "), button(`Make a new link for ${name}`, "New link", async () => { await makeLink(name); again(); })];
  return [button(`Revoke the link of ${name}`, "Revoke", async () => {
    if (!window.confirm(`The link of ${name} will work no longer. The labels stay. Revoke it?`)) return;
    await ask(`/api/tokens?worker=${encodeURIComponent(name)}`, { method: "DELETE" });
    part("added").textContent = `The link of ${name} works no longer; the labels stay.`;
    again();
  })];
}

function showWorkers(rows, seconds, again) {
  rows.sort((one, other) => other.labels - one.labels || other.has_link - one.has_link);
  part("workers").tBodies[0].replaceChildren(...rows.map((row) => element("tr", {},
    element("th", { scope: "row" }, element("bdi", {}, row.worker)),
    cell({ class: "num" }, number(row.labels)),
    cell({ class: "num wide" }, number(row.skips)),
    cell({ class: "num wide" }, Object.hasOwn(seconds, row.worker) ? seconds[row.worker].toFixed(1) : ""),
    cell({ class: "num wide" }, row.known[0] ? `${row.known[1]} of ${row.known[0]}` : ""),
    cell({}, skill(row), ...row.flags.map((flag) => element("span", { class: "flag" }, flag))),
    cell({}, ...linkOf(row, again)))));
}

function showClasses(found) {
  const total = found.classes.reduce((sum, one) => sum + one.given, 0), shared = found.agreement;
  const figure = (one) => `${one.value.toFixed(2)}${range(one.low, one.high, (end) => end.toFixed(2))}`;
  part("agreement").textContent = shared
    ? `${number(shared.tasks)} tasks have labels by two or more people. Two labels of a task are the same in ${percent(shared.percent.value, 0)}${range(shared.percent.low, shared.percent.high, (end) => percent(end, 0))}` + (shared.alpha.value === null ? "." : `; Krippendorff's alpha is ${figure(shared.alpha)}.`)
    : "No two people have labelled the same task, so nobody knows how far they agree. Set overlap in project.toml to 0.1, and a tenth of the tasks get a second label.";
  const share = (value) => (value === null || value === undefined ? "" : percent(value, 0));
  part("classes").tBodies[0].replaceChildren(...found.classes.map((row) => element("tr", {},
    element("th", { scope: "row" }, element("bdi", {}, row.label)),
    cell({ class: "num" }, number(row.given)),
    cell({ class: "num wide" }, total ? percent(row.given / total, 0) : ""),
    cell({ class: "num" }, share(row.precision)),
    cell({ class: "num" }, share(row.recall)),
    cell({ class: "wide" }, ...(row.instead ? [element("bdi", {}, row.instead[0]), ` (${percent(row.instead[1], 0)})`] : [])),
    cell({ class: "wide" }, row.agreement === null ? "" : `${percent(row.agreement, 0)}${range(row.agreement_low, row.agreement_high, (end) => percent(end, 0))}`))));
}

const day = (seconds) => new Date(1000 * seconds).toLocaleDateString("en", { day: "numeric", month: "short" });
const hour = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false });
const span = (from, to) => `${day(from)}, ${hour(from)} to ${day(from) === day(to) ? "" : `${day(to)}, `}${hour(to)}`;

function showTime(found) {
  const changed = Object.entries(found.changed).map(([name, [first, second]]) => [element("bdi", {}, name), ` (${percent(first, 0)}, now ${percent(second, 0)})`]);
  part("periods").closest(".scroll").hidden = found.periods.length === 0;
  if (!found.periods.length) part("changed").textContent = "The first fit says how right the labels were in the course of time.";
  else if (!changed.length) part("changed").textContent = "Nobody's labels have clearly become better or worse.";
  else part("changed").replaceChildren("The labels of these people have clearly changed, from the first to the second half of their work: ", ...changed.flatMap((one, place) => (place ? [", ", ...one] : one)), ".");
  part("periods").tBodies[0].replaceChildren(...found.periods.map((row) => element("tr", {},
    element("th", { scope: "row" }, span(row.from, row.to)),
    cell({ class: "num wide" }, number(row.labels)),
    cell({}, bar(row.right, row.low, row.high)),
    cell({ class: "num" }, row.seconds === null ? "" : row.seconds.toFixed(1)))));
}

function showRemarks(found) {
  part("reasons").textContent = found.reasons.length ? `Why tasks were skipped: ${found.reasons.map(([reason, times]) => `${reason} (${number(times)})`).join("; ")}.` : "Nobody has skipped a task.";
  part("remarks").closest(".scroll").hidden = found.remarks.length === 0;
  part("remarks").tBodies[0].replaceChildren(...found.remarks.map((row) => element("tr", {},
    element("th", { scope: "row" }, taskButton(row.task)),
    cell({}, element("bdi", {}, row.worker)),
    cell({}, ...(row.flagged ? [element("span", { class: "flag" }, "flagged")] : []), row.kind === "skip" ? "skipped: " : "", element("bdi", {}, row.text)))));
}

const taskButton = (task) => button(`Show task ${task}`, task, () => openTask(task), { class: "link" });

async function openTask(task) {
  const found = await ask(`/api/task?task=${encodeURIComponent(task)}`);
  part("one-title").textContent = task;
  part("one-text").textContent = found.text || "";
  part("one-image").hidden = true;
  if (found.has_image) await putImage(part("one-image"), task, "");
  const best = `${words(found.found.label)}, ${percent(found.found.confidence)} sure${found.found.settled ? ", settled" : ""}`;
  part("one-found").textContent = found.answers.length ? `Label so far: ${best}.` : "Nobody has labelled it.";
  const seconds = (answer) => (answer.seconds === null ? "" : ` (${answer.seconds.toFixed(1)} s)`);
  part("one-said").replaceChildren(
    ...found.answers.map((one) => element("li", {}, element("bdi", {}, one.worker), ": ", element("bdi", {}, one.label || "none"), seconds(one))),
    ...found.remarks.map((one) => element("li", {}, element("bdi", {}, one.worker), one.kind === "skip" ? " skipped it: " : " says: ", element("bdi", {}, one.text))));
  if (!part("one").open) part("one").showModal();
}

async function putImage(image, task, small) {
  const content = await ask(`/api/image?task=${encodeURIComponent(task)}${small}`, { raw: true }).catch(() => null);
  if (!content || !content.size) return;
  image.src = URL.createObjectURL(content);
  image.alt = small ? "" : `Image of task ${task}`;
  image.hidden = false;
  image.decode().catch(() => {}).finally(() => URL.revokeObjectURL(image.src));
}
