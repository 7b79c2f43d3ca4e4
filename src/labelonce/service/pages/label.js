// The labelling page: one task at a time. Number keys choose, or tick boxes that Enter sends; z undoes, s skips.
"use strict";

const UNSENT = "labelonce-unsent";
const KEYS = "1234567890";
const REASONS = ["I cannot tell", "Something is broken", "None of the labels fits"];
const RETRY = 2000;
const WHY = {
  budget: "All labels that were planned have been given. Thank you.",
  risk: "The labels are as sure as they need to be. Thank you.",
  gain: "More labels would add little. Thank you.",
  nothing: "There is nothing for you right now. Look in again later.",
};

const part = (id) => document.getElementById(id);
const boxes = () => [...part("choices").querySelectorAll("input")];
let task = null, shownAt = 0, busy = false, count = 0, given = [], picture = null, worker = null;

function say(sentence) {
  part("notice").textContent = sentence;
  part("notice").hidden = !sentence;
}

function setBusy(now) {
  busy = now;
  for (const control of part("choices").querySelectorAll("button, input")) control.disabled = now || !task;
  part("send").disabled = now || !task;
  part("skip").disabled = now || !task;
  part("undo").disabled = now || given.length === 0;
}

async function show(next, ticked = []) {
  task = next.task;
  for (const box of boxes()) box.checked = ticked.includes(box.value);
  part("text").hidden = !task || next.text === null;
  part("text").textContent = next.text === null ? "" : next.text;
  part("nothing").hidden = Boolean(task);
  part("nothing").textContent = task ? "" : WHY[next.why] || WHY.nothing;
  part("image").hidden = true;
  if (picture) URL.revokeObjectURL(picture);
  picture = null;
  if (task && next.has_image) {
    const image = part("image"), shown = task;
    const content = await ask(`/api/image?task=${encodeURIComponent(task)}`, { raw: true });
    if (shown !== task) return;
    picture = URL.createObjectURL(content);
    image.src = picture;
    image.alt = `Image of task ${task}`;
    await image.decode().catch(() => say("The image cannot be shown."));
    image.classList.toggle("small", image.naturalWidth < 64);
    image.hidden = false;
  }
  shownAt = performance.now();
  part("done").textContent = `${count} ${count === 1 ? "label" : "labels"} from you`;
}

// Sends until the service has it: the key makes sure that it counts once. What is unsent survives a reload.
async function send(path, body) {
  localStorage.setItem(UNSENT, JSON.stringify({ worker, path, body }));
  for (;;) {
    try {
      const kept = await ask(path, { method: "POST", body });
      localStorage.removeItem(UNSENT);
      say("");
      return kept;
    } catch (error) {
      if (error instanceof Refusal && error.status !== 429 && error.status < 500) {
        localStorage.removeItem(UNSENT);
        throw error;
      }
      say("No connection. Your label is kept here and sent as soon as there is one.");
      await new Promise((go) => setTimeout(go, RETRY));
    }
  }
}

async function step(work) {
  if (busy) return;
  setBusy(true);
  try {
    await work();
  } catch (error) {
    say(error.message);
  } finally {
    setBusy(false);
  }
}

async function forward() {
  const next = await ask("/api/next");
  await show(next);
}

const key = () => (crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`);

// `answer` is { label }, or { labels } of check boxes.
function give(answer) {
  if (!task) return;
  step(async () => {
    const seconds = Math.min((performance.now() - shownAt) / 1000, 86400);
    const kept = await send("/api/annotations", { key: key(), task, ...answer, seconds });
    given.push(kept.id);
    count += 1;
    await forward();
  });
}

const sendBoxes = () => give({ labels: boxes().filter((box) => box.checked).map((box) => box.value) });

function skip(reason) {
  step(async () => {
    const kept = await send("/api/skips", { key: key(), task, reason });
    given.push(kept.id);
    await forward();
  });
}

function undo() {
  if (given.length === 0) return;
  step(async () => {
    const back = await ask(`/api/annotations/${given[given.length - 1]}`, { method: "DELETE" });
    given.pop();
    if (back.label !== null || back.labels !== null) count -= 1;
    await show(back, back.labels || []);
    say("");
  });
}

function openSkip() {
  if (task && !busy) {
    part("own-reason").value = "";
    part("why").showModal();
  }
}

const shortcut = (place) => (place < KEYS.length ? [element("kbd", {}, KEYS[place])] : []);

function choice(name, place) {
  const button = element("button", { type: "button" }, ...shortcut(place), element("bdi", {}, name));
  button.addEventListener("click", () => give({ label: name }));
  return button;
}

function box(name, place) {
  const input = element("input", { type: "checkbox", value: name });
  return element("label", { class: "box" }, input, ...shortcut(place), element("bdi", {}, name));
}

function pressed(event, me) {
  if (event.ctrlKey || event.metaKey || event.altKey || part("why").open || event.repeat) return;
  const place = KEYS.indexOf(event.key);
  if (place >= 0 && place < me.classes.length) {
    if (me.multilabel) boxes()[place].click();
    else give({ label: me.classes[place] });
  } else if (event.key === "Enter" && me.multilabel && event.target.tagName !== "BUTTON") {
    event.preventDefault();
    sendBoxes();
  } else if (event.key === "z") undo();
  else if (event.key === "s") {
    event.preventDefault();
    openSkip();
  }
}

function build(me) {
  worker = me.worker;
  document.title = me.title;
  part("title").textContent = me.title;
  part("who").textContent = me.worker;
  part("instructions").textContent = me.instructions;
  me.classes.forEach((name, place) => part("choices").append(me.multilabel ? box(name, place) : choice(name, place)));
  part("send").hidden = !me.multilabel;
  part("send").addEventListener("click", sendBoxes);
  REASONS.forEach((reason, place) => {
    const radio = element("input", { type: "radio", name: "reason", value: reason });
    radio.checked = place === 0;
    part("reasons").append(element("label", { class: "choice" }, radio, reason));
  });
  part("undo").addEventListener("click", undo);
  part("skip").addEventListener("click", openSkip);
  part("why").addEventListener("close", () => {
    const chosen = part("reasons").querySelector("input:checked").value;
    if (part("why").returnValue === "skip") skip(part("own-reason").value.trim() || chosen);
    part("why").returnValue = "";
  });
  document.addEventListener("keydown", (event) => pressed(event, me));
}

// What could not be sent is sent now, if it is of the same worker.
async function sendAgain() {
  const unsent = JSON.parse(localStorage.getItem(UNSENT) || "null");
  if (!unsent || unsent.worker !== worker) return;
  const kept = await send(unsent.path, unsent.body).catch(() => null);
  if (!kept) return;
  given.push(kept.id);
  if (kept.new && unsent.path === "/api/annotations") count += 1;
}

signIn(async (me) => {
  if (me.role === "admin") {
    location.replace("/dashboard");
    return;
  }
  build(me);
  count = me.labels;
  given = me.last === null ? [] : [me.last];
  setBusy(true);
  await sendAgain();
  await forward();
  setBusy(false);
});
