// What both pages share: the token, and requests that carry it. Text from data is only ever set by textContent.
"use strict";

const KEY = "labelonce-token";
const AGAIN_AFTER = 3000;
const LOST = "This link does not work, or it was revoked. Ask whoever sent it for a new one.";

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

// Calls `start` with what /api/me says. A link that does not work is told in a sentence; whoever comes without one sees
// the form for a token; while the service cannot be reached it is asked again.
async function signIn(start) {
  const form = document.getElementById("sign-in"), field = document.getElementById("token");
  const said = document.getElementById("sign-in-said"), main = document.getElementById("main");
  const sentence = document.getElementById("sentence"), out = document.getElementById("sign-out");
  function show(shown, text = "") {
    for (const one of [form, main, sentence]) one.hidden = one !== shown;
    out.hidden = shown !== main;
    (shown === sentence ? sentence : said).textContent = text;
  }
  async function tryIt({ typed = false } = {}) {
    let me;
    try {
      me = await ask("/api/me");
    } catch (error) {
      if (error.status === 401 && !typed && localStorage.getItem(KEY)) {
        localStorage.removeItem(KEY);
        show(sentence, LOST);
      } else if (error.status < 500) {
        show(form, typed || error.status !== 401 ? error.message : "");
        field.focus();
      } else {
        show(sentence, "The service cannot be reached at this moment. It is asked again.");
        setTimeout(() => tryIt({ typed }), AGAIN_AFTER);
      }
      return;
    }
    try {
      show(main);
      await start(me);
    } catch (error) {
      show(form, error.message);
      field.focus();
    }
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    localStorage.setItem(KEY, field.value.trim());
    tryIt({ typed: true });
  });
  out.addEventListener("click", () => {
    localStorage.removeItem(KEY);
    location.reload();
  });
  window.addEventListener("hashchange", () => { if (location.hash.includes("token=")) { takeToken(); location.reload(); } });
  takeToken();
  await tryIt();
}
