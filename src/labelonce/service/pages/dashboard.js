// The dashboard: how far the project is, asked for again every few seconds.
"use strict";

const AGAIN = 5000;
const ROWS = 20;
const REASON = {
  budget: "Stop: the budget is spent.",
  risk: "Stop: the average task's label is as sure as max_risk asks for.",
  gain: "Stop: the next label would bring less than min_gain.",
};

let offset = 0, fitted = false, hasImages = null, shownTasks = "";

function say(sentence) {
  part("notice").textContent = sentence;
  part("notice").hidden = !sentence;
}

function card(title, figure, note) {
  const shown = element("dd", {}, figure);
  if (note) shown.append(element("small", {}, note));
  return element("div", {}, element("dt", {}, title), shown);
}

function showProgress(found) {
  fitted = found.fit !== null;
  const last = found.history.filter((entry) => entry.accuracy !== undefined).at(-1);
  const range = last ? `${percent(last.low, 0)} to ${percent(last.high, 0)}, by estimate` : "after the first fit";
  part("cards").replaceChildren(
    card("Tasks settled", `${number(found.settled)} of ${number(found.tasks)}`, `${percent(found.settled / found.tasks, 0)}`),
    card("Tasks labelled", number(found.labelled), `${number(found.tasks - found.labelled)} have no label`),
    card("Labels", number(found.labels), found.budget ? `of ${number(found.budget)}` : `${(found.labels / found.tasks).toFixed(2)} per task`),
    card("Right labels", last ? percent(last.accuracy) : "?", range),
    card("Skipped", number(found.skips)),
  );
  part("fitting").textContent = found.fitting ? "A fit is running." : found.fit ? `Fit ${found.fit} of ${number(found.fitted_labels)} labels.` : "No fit yet.";
  const byHand = found.add_to_label_studio && `Label Studio could not be told of this service. Add it there as a model: ${found.add_to_label_studio}`;
  const bad = found.unreadable.slice(0, 5).join(", ") + (found.unreadable.length > 5 ? ", ..." : "");
  const unreadable = bad && `${number(found.unreadable.length)} images cannot be read, and nothing is learned from them: ${bad}.`;
  const doubts = found.doubts.length && `The last fit is doubtful, so one label settles no task: ${found.doubts.map((one) => one.split(/\. (?=[A-Z])/)[0].replace(/\.$/, "")).join("; ")}.`;
  say([found.trouble && `The last fit failed: ${found.trouble}`, doubts, unreadable, byHand].filter(Boolean).join(" "));
  part("refit").disabled = found.fitting;
  part("outlook").textContent = outlook(found);
  part("stop").textContent = whenToStop(found);
  draw(found);
}

function outlook(found) {
  if (!found.outlook) return "The first fit says what the next labels are expected to bring.";
  const { next, made_right: made, steps } = found.outlook;
  return `The next ${next} labels are expected to make ${Math.max(0, made).toFixed(1)} more ${found.multilabel ? "boxes" : "tasks"} right: ${percent(steps[0].accuracy, 2)} to ${percent(steps[1].accuracy, 2)} of all.`;
}

function whenToStop(found) {
  if (found.stop) return REASON[found.stop];
  if (!found.outlook) return "";
  const { worth_it_for: worth, target, target_after: after, steps } = found.outlook;
  const most = number(steps.at(-1).labels);
  if (target !== null) {
    return after === null ? `The target of ${percent(target)} is more than ${most} labels away.` : `The target of ${percent(target)} is about ${number(after)} labels away.`;
  }
  if (worth === null) return `Go on: even after ${most} more labels a hundred would still pay.`;
  const little = `less than half a ${found.multilabel ? "box" : "task"} right`;
  if (worth === 0) return `It is time to stop: a hundred more labels would make ${little}.`;
  return `Go on for about ${number(worth)} labels: after that a hundred would make ${little}.`;
}

// The next larger one of 1, 2, 5, 10, 20, 50, ...
function round(step) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(step)));
  return power * [1, 2, 5, 10].find((one) => one * power >= step);
}

function draw(found) {
  const points = found.history.filter((entry) => entry.accuracy !== undefined);
  part("chart").toggleAttribute("hidden", !points.length);
  const ahead = found.outlook ? found.outlook.steps : [];
  const bought = points.length ? points.at(-1).labels : 0;
  const most = Math.max(1, bought + (ahead.length ? ahead.at(-1).labels : 0));
  const lowest = Math.min(1, ...points.map((entry) => entry.low), ...ahead.map((step) => step.accuracy));
  const floor = Math.max(0, Math.floor(lowest * 10) / 10 - (lowest >= 1 ? 0.1 : 0));
  const width = Math.max(300, Math.round(part("chart").clientWidth));  // so that letters keep their size on a phone
  part("chart").setAttribute("viewBox", `0 0 ${width} 260`);
  const x = (labels) => 56 + (width - 80) * labels / most;
  const y = (share) => 220 - 200 * (share - floor) / (1 - floor);
  const path = (list) => list.map(([left, top], place) => `${place ? "L" : "M"}${left.toFixed(1)} ${top.toFixed(1)}`).join("");
  const parts = [];
  for (let tick = 0; tick <= 4; tick += 1) {
    const share = floor + (1 - floor) * tick / 4;
    parts.push(element("line", { class: "axis", x1: 56, x2: width - 24, y1: y(share), y2: y(share) }));
    parts.push(element("text", { x: 50, y: y(share) + 4, "text-anchor": "end" }, percent(share, Math.round(1000 * share) % 10 ? 1 : 0)));
  }
  for (let labels = 0; labels <= most; labels += round(most / 4)) parts.push(element("text", { x: x(labels), y: 242, "text-anchor": "middle" }, number(labels)));
  if (points.length) {
    const band = [...points.map((entry) => [x(entry.labels), y(entry.high)]), ...points.slice().reverse().map((entry) => [x(entry.labels), y(entry.low)])];
    parts.push(element("path", { class: "band", d: `${path(band)}Z` }));
    parts.push(element("path", { class: "line", d: path(points.map((entry) => [x(entry.labels), y(entry.accuracy)])) }));
    for (const entry of points) parts.push(element("line", { class: "bar", x1: x(entry.labels), x2: x(entry.labels), y1: y(entry.low), y2: y(entry.high) }));
    for (const entry of points) parts.push(element("circle", { class: "dot", cx: x(entry.labels), cy: y(entry.accuracy), r: 3.5 }));
  }
  if (ahead.length && points.length) {
    const shift = points.at(-1).accuracy - ahead[0].accuracy;
    parts.push(element("path", { class: "ahead", d: path(ahead.map((step) => [x(bought + step.labels), y(Math.min(1, step.accuracy + shift))])) }));
  }
  part("chart").replaceChildren(...parts);
  part("accuracy").textContent = points.length
    ? `After ${number(bought)} labels ${percent(points.at(-1).accuracy)} of all labels are right, by estimate (${percent(points.at(-1).low)} to ${percent(points.at(-1).high)}). Dashed: what more labels are expected to bring.`
    : "The first fit, after a few dozen labels, says how many labels are right.";
}

function showLabels(found) {
  const last = Math.min(found.total, found.offset + found.rows.length);
  part("where").textContent = `${number(found.offset + 1)} to ${number(last)} of ${number(found.total)} tasks`;
  part("back").disabled = found.offset === 0;
  part("forward").disabled = last >= found.total;
  const tasks = JSON.stringify(found.rows);
  if (tasks === shownTasks) return;  // what is read or clicked now is not taken away
  shownTasks = tasks;
  part("labels").tBodies[0].replaceChildren(...found.rows.map((row) => element("tr", {},
    element("th", { scope: "row" }, element("div", { class: "named" }, ...thumbnail(row.task), taskButton(row.task))),
    cell({}, element("bdi", row.labels ? {} : { class: "soft" }, fitted || row.labels ? words(row.label) : "")),
    cell({ class: "num" }, fitted || row.labels ? percent(row.confidence) : ""),
    cell({ class: "num wide" }, number(row.labels)),
    cell({ class: "wide" }, row.settled ? "yes" : ""))));
}

function thumbnail(task) {
  if (!hasImages) return [];
  const image = element("img", { class: "thumb", alt: "" });
  putImage(image, task, "&small=true");
  return [image];
}

async function refresh() {
  const [progress, workers, labels, figures] = await Promise.all([
    ask("/api/progress"), ask("/api/workers"), ask(`/api/labels?offset=${offset}&limit=${ROWS}`), ask("/api/figures"),
  ]);
  hasImages = progress.has_images;
  showProgress(progress);
  if (!part("workers").contains(document.activeElement)) showWorkers(workers, figures.seconds, refresh);
  showClasses(figures);
  showTime(figures);
  if (!part("remarks").contains(document.activeElement)) showRemarks(figures);
  showLabels(labels);
}

async function download(what) {
  const content = await ask(`/api/export?what=${what}&format=csv&spreadsheet=true`, { raw: true });
  const link = element("a", { href: URL.createObjectURL(content), download: `${what}.${what === "everything" ? "zip" : "csv"}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function build() {
  const move = (by) => () => { offset = Math.max(0, offset + by); refresh(); };
  part("back").addEventListener("click", move(-ROWS));
  part("forward").addEventListener("click", move(ROWS));
  part("refit").addEventListener("click", () => ask("/api/refit", { method: "POST" }).then(refresh));
  for (const button of document.querySelectorAll("[data-export]")) {
    button.addEventListener("click", () => download(button.dataset.export));
  }
  part("add").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await makeLink(part("name").value)) part("name").value = "";
    await refresh();
  });
}

signIn(async (me) => {
  if (me.role !== "admin") throw new Refusal(403, "The dashboard needs the admin's token.");
  document.title = `${me.title}: dashboard`;
  part("title").textContent = me.title;
  const right = me.multilabel ? "that a box is ticked, or left, rightly" : "of giving the true label";
  part("skill").textContent = `Skill is the chance ${right}, with a 90 % interval.`;
  build();
  await refresh();
  setInterval(() => refresh().catch((error) => say(error.message)), AGAIN);
});
