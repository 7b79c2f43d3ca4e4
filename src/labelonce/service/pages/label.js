// The labelling page: one task at a time. Keys choose, or tick boxes that Enter sends; z undoes, s skips, c comments.
"use strict";

const UNSENT = "labelonce-unsent";
const KEYS = "1234567890qwertyuopadfghjklxvbnm";  // without c, i, s and z
const MANY = 16;  // classes from which on they can be searched
const RECENT = 5;
const REASONS = ["I cannot tell", "Something is broken", "None of the labels fits"];
const RETRY = 2000;
const WHY = {
  budget: "Finished: all labels that were planned have been given. Thank you.",
  risk: "Finished: the labels are as sure as they need to be. Thank you.",
  gain: "Finished: more labels would add little. Thank you.",
  all: "Finished: you have answered every task. Thank you.",
  nothing: "There is nothing for you right now. Others may still be at work: look again later.",
};

const part = (id) => document.getElementById(id);
const boxes = () => [...part("choices").querySelectorAll("input")];
const percent = (share) => `${Math.floor(100 * share)}\u00a0%`;
const count = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;
let me = null, task = null, shownAt = 0, busy = false, labels = 0, settled = 0, recent = [], picture = null, zoom = null;

function say(sentence) {
  part("notice").textContent = sentence;
  part("notice").hidden = !sentence;
}

function setBusy(now) {
  busy = now;
  for (const control of part("choices").querySelectorAll("button:not(.help), input")) control.disabled = now || !task;
  for (const id of ["send", "skip", "remark"]) part(id).disabled = now || !task;
  part("undo").disabled = now || recent.length === 0;
  for (const button of part("recent").querySelectorAll("button")) button.disabled = now;
}

function showProgress() {
  const own = labels < me.goal ? `${labels} of ${count(me.goal, "label")} from you` : `${count(labels, "label")} from you`;
  part("done").textContent = `${own}${me.goal && labels >= me.goal ? ", your goal is reached" : ""}; ${percent(settled)} of all tasks are settled`;
  part("progress").value = me.goal ? Math.min(1, labels / me.goal) : settled;
}

const said = (answer) => (answer.labels ? answer.labels.join(", ") || "none" : answer.label === null ? "skipped" : answer.label);

function showRecent() {
  part("last").hidden = recent.length === 0;
  part("recent").replaceChildren(...recent.slice(0, RECENT).map((answer) => {
    const change = element("button", { type: "button", "aria-label": `Change the answer to ${answer.task}` }, "Change");
    change.addEventListener("click", () => takeBack(answer));
    return element("li", {}, element("bdi", { class: "soft" }, answer.task), element("bdi", {}, said(answer)), change);
  }));
}

async function show(next, ticked = []) {
  task = next.task;
  if (next.share_settled !== undefined) settled = next.share_settled;
  for (const box of boxes()) box.checked = ticked.includes(box.value);
  part("text").hidden = !task || next.text === null;
  part("text").textContent = next.text === null ? "" : next.text;
  part("text").scrollTop = 0;
  part("finished").hidden = Boolean(task);
  part("nothing").textContent = task ? "" : WHY[next.why] || WHY.nothing;
  part("summary").textContent = task ? "" : `You gave ${count(labels, "label")}; ${percent(settled)} of all tasks are settled.`;
  part("frame").hidden = part("zoom").hidden = true;
  if (picture) URL.revokeObjectURL(picture);
  picture = null;
  if (task && next.has_image) await showImage();
  shownAt = performance.now();
  showProgress();
  showRecent();
}

async function showImage() {
  const image = part("image"), shown = task;
  const content = await ask(`/api/image?task=${encodeURIComponent(task)}`, { raw: true });
  if (shown !== task) return;
  picture = URL.createObjectURL(content);
  image.src = picture;
  image.alt = `Image of task ${task}`;
  await image.decode().catch(() => say("The image cannot be shown."));
  image.classList.toggle("small", image.naturalWidth < 64);
  part("frame").hidden = part("zoom").hidden = false;
  zoom.reset();
}

// Sends until the service has it: the key makes sure that it counts once. What is unsent survives a reload.
async function send(path, body) {
  localStorage.setItem(UNSENT, JSON.stringify({ worker: me.worker, path, body }));
  for (;;) {
    try {
      const kept = await ask(path, { method: "POST", body });
      localStorage.removeItem(UNSENT);
      say("");
      return kept;
    } catch (error) {
      if (!passes(error)) {
        localStorage.removeItem(UNSENT);
        throw error;
      }
      say("No connection. Your label is kept here and sent as soon as there is one.");
      await wait();
    }
  }
}

async function step(work) {
  if (busy) return;
  setBusy(true);
  try {
    await work();
  } catch (error) {
    if (error.status === 404 || error.status === 409) await forward().catch(() => {});  // answered in another tab
    say(error.status === 401 ? LOST : error.message);
  } finally {
    setBusy(false);
  }
}

const wait = () => new Promise((go) => setTimeout(go, RETRY));
const passes = (error) => !(error instanceof Refusal) || error.status === 429 || error.status >= 500;

async function forward() {
  for (let waited = false; ; waited = true) {
    try {
      await show(await ask("/api/next"));
      if (waited) say("");
      return;
    } catch (error) {
      if (!passes(error)) throw error;
      say("No connection. The next task comes as soon as there is one.");
      await wait();
    }
  }
}

const key = () => (crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`);

function keep(kept, answer) {
  recent = [{ label: null, labels: null, ...answer, id: kept.id, task: kept.task }, ...recent];
}

function mark(names) {
  for (const button of part("choices").querySelectorAll("button[data-name]")) button.classList.toggle("chosen", names.includes(button.dataset.name));
}

// `answer` is { label }, or { labels } of check boxes.
function give(answer) {
  if (!task) return;
  mark([answer.label]);
  step(async () => {
    const seconds = Math.min((performance.now() - shownAt) / 1000, 86400);
    const kept = await send("/api/annotations", { key: key(), task, ...answer, seconds });
    keep(kept, answer);
    labels += 1;
    await forward();
    if (kept.known) say(kept.known === answer.label ? `Right: it is ${kept.known}.` : `It is known to be ${kept.known}; you said ${answer.label}.`);
    else if (labels === me.goal) say(`You have reached your goal of ${count(labels, "label")}. Thank you. Go on if you like.`);
  }).finally(() => mark([]));
}

const sendBoxes = () => give({ labels: boxes().filter((box) => box.checked).map((box) => box.value) });

function skip(reason) {
  step(async () => {
    keep(await send("/api/skips", { key: key(), task, reason }), {});
    await forward();
  });
}

function takeBack(answer) {
  step(async () => {
    const back = await ask(`/api/annotations/${answer.id}`, { method: "DELETE" });
    recent = recent.filter((one) => one.id !== answer.id);
    if (back.label !== null || back.labels !== null) labels -= 1;
    await show(back, back.labels || []);
    say("");
  });
}

function remark() {
  const body = { key: key(), task, text: part("words").value.trim(), flagged: part("flagged").checked };
  if (body.text) step(async () => { await ask("/api/comments", { method: "POST", body }); say("Your comment is kept. Thank you."); });
}

// Opens a dialog about the task, and calls `then` where it was not cancelled.
function dialog(id, then) {
  part(id).addEventListener("close", () => {
    if (part(id).returnValue) then();
    part(id).returnValue = "";
  });
  return () => {
    if (!task || busy) return;
    part(id).querySelector("form").reset();
    part(id).showModal();
  };
}

function openGuide(name) {
  if (part("open-guide").hidden || part("guide").open) return;
  part("guide").showModal();
  const heading = [...part("guide-text").querySelectorAll("h1, h2, h3, h4, h5, h6")].find((one) => one.textContent.trim() === name);
  if (heading) heading.scrollIntoView();
  else part("guide-text").scrollTop = 0;
}

function drawn(node) {
  if (typeof node === "string") return node;
  const attributes = Object.fromEntries(["href", "src", "alt"].filter((name) => name in node).map((name) => [name, node[name]]));
  if (node.tag === "a") Object.assign(attributes, { target: "_blank", rel: "noreferrer noopener" });
  return element(node.tag, attributes, ...node.children.map(drawn));
}

const shortcut = (place) => (place < KEYS.length ? [element("kbd", {}, KEYS[place])] : []);

function choice(name, place) {
  const button = element("button", { type: "button", "data-name": name }, ...shortcut(place), element("bdi", {}, name));
  button.addEventListener("click", () => give({ label: name }));
  return button;
}

function box(name, place) {
  const input = element("input", { type: "checkbox", value: name });
  return element("label", { class: "box" }, input, ...shortcut(place), element("bdi", {}, name));
}

// A class that has a heading in the instructions gets a button that opens them there.
function withHelp(made, name, headings) {
  if (!headings.has(name)) return element("div", { class: "option" }, made);
  const help = element("button", { type: "button", class: "help", "aria-label": `What ${name} means` }, "?");
  help.addEventListener("click", () => openGuide(name));
  return element("div", { class: "option" }, made, help);
}

function filter() {
  const wanted = part("find").value.trim().toLowerCase();
  me.classes.forEach((name, place) => { part("choices").children[place + 1].hidden = !name.toLowerCase().includes(wanted); });
}

function chooseFound(event) {
  const place = me.classes.findIndex((_, at) => !part("choices").children[at + 1].hidden);
  if (event.key === "Enter" && part("find").value.trim() && place >= 0) {
    event.preventDefault();
    choose(place);
  } else if (event.key !== "Escape") return;
  part("find").value = "";
  filter();
  part("find").blur();
}

function choose(place) {
  if (me.multilabel) boxes()[place].click();
  else give({ label: me.classes[place] });
}

const DOES = { z: () => recent.length && takeBack(recent[0]), s: () => openSkip(), c: () => openSay(), i: () => openGuide(), "+": () => zoom.by(1.5), "=": () => zoom.by(1.5), "-": () => zoom.by(1 / 1.5), "/": () => { if (!part("filter").hidden) part("find").focus(); } };
const openSkip = dialog("why", () => skip(part("own-reason").value.trim() || part("reasons").querySelector("input:checked").value));
const openSay = dialog("say", remark);

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.querySelector("dialog[open]")) return;
  if (event.target === part("find")) return;
  const place = KEYS.indexOf(event.key);
  if (place >= 0 && place < me.classes.length) choose(place);
  else if (event.key === "Enter" && me.multilabel && event.target.tagName !== "BUTTON") {
    event.preventDefault();
    sendBoxes();
  } else if (Object.hasOwn(DOES, event.key)) {
    event.preventDefault();
    DOES[event.key]();
  }
}

async function build() {
  document.title = me.title;
  part("title").textContent = me.title;
  part("who").textContent = me.worker;
  part("instructions").textContent = me.instructions;
  part("instructions").hidden = !me.instructions;
  const guide = (await ask("/api/instructions")).content;
  part("guide-text").replaceChildren(...guide.map(drawn));
  part("open-guide").hidden = guide.length === 0;
  part("open-guide").addEventListener("click", () => openGuide());
  const headings = new Set([...part("guide-text").querySelectorAll("h1, h2, h3, h4, h5, h6")].map((one) => one.textContent.trim()));
  me.classes.forEach((name, place) => part("choices").append(withHelp(me.multilabel ? box(name, place) : choice(name, place), name, headings)));
  part("filter").hidden = me.classes.length < MANY;
  part("find").addEventListener("input", filter);
  part("find").addEventListener("keydown", chooseFound);
  part("send").hidden = !me.multilabel;
  part("send").addEventListener("click", sendBoxes);
  REASONS.forEach((reason, place) => {
    const radio = element("input", { type: "radio", name: "reason", value: reason, ...(place === 0 ? { checked: "" } : {}) });
    part("reasons").append(element("label", { class: "choice" }, radio, reason));
  });
  for (const [id, name] of [["undo", "z"], ["skip", "s"], ["remark", "c"]]) part(id).addEventListener("click", DOES[name]);
  part("look-again").addEventListener("click", () => step(forward));
  zoom = zoomable(part("frame"), part("image"), part("zoom"));
  document.addEventListener("keydown", pressed);
  if (guide.length && !me.labels && !me.recent.length) openGuide();
}

// What could not be sent is sent now, if it is of the same worker.
async function sendAgain() {
  const unsent = JSON.parse(localStorage.getItem(UNSENT) || "null");
  if (!unsent || unsent.worker !== me.worker) return;
  const kept = await send(unsent.path, unsent.body).catch(() => null);
  if (!kept || !kept.new) return;
  keep(kept, { label: unsent.body.label || null, labels: unsent.body.labels || null });
  if (unsent.path === "/api/annotations") labels += 1;
}

signIn(async (found) => {
  me = found;
  if (me.role === "admin") {
    location.replace("/dashboard");
    return;
  }
  await build();
  [labels, settled, recent] = [me.labels, me.share_settled, me.recent];
  setBusy(true);
  await sendAgain();
  await forward();
  setBusy(false);
});
