// What both pages share: the token, and requests that carry it. Text from data is only ever set by textContent.
"use strict";

const KEY = "labelonce-token";

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "line", "circle", "path", "text", "g"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  for (const child of children) made.append(child);  // a string becomes a text, never markup
  return made;
}

function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    localStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);  // not to stay in the address
  }
  return localStorage.getItem(KEY);
}

class Refusal extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

async function ask(path, { method = "GET", body, raw = false } = {}) {
  const headers = { Authorization: `Bearer ${localStorage.getItem(KEY) || ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!answer.ok) {
    const wrong = await answer.json().catch(() => ({}));
    const detail = typeof wrong.detail === "string" ? wrong.detail : `The service answered ${answer.status}.`;
    throw new Refusal(answer.status, detail);
  }
  return raw ? answer.blob() : answer.json();
}

// Shows the form for a token until one is accepted, then calls `start` with what /api/me says.
async function signIn(start) {
  const form = document.getElementById("sign-in"), field = document.getElementById("token");
  const said = document.getElementById("sign-in-said"), main = document.getElementById("main");
  async function tryIt() {
    try {
      const me = await ask("/api/me");
      form.hidden = true;
      main.hidden = false;
      await start(me);
    } catch (error) {
      form.hidden = false;
      main.hidden = true;
      said.textContent = error.status === 401 && !field.value ? "" : error.message;
      field.focus();
    }
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    localStorage.setItem(KEY, field.value.trim());
    tryIt();
  });
  document.getElementById("sign-out").addEventListener("click", () => {
    localStorage.removeItem(KEY);
    location.reload();
  });
  window.addEventListener("hashchange", () => { if (location.hash.includes("token=")) { takeToken(); location.reload(); } });
  takeToken();
  await tryIt();
}
