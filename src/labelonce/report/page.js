"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const K = data.classes.length;
  const NUMBERED = 15; // more classes than this are drawn as a picture
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const maps = bytes(data.maps);
  const population = bytes(data.population);
  const lowered = data.names.map((name) => name.toLowerCase());
  const count = (n) => n.toLocaleString("en");
  const share = (thousandths) => (thousandths / 1000).toFixed(2);
  const percent = (byte) => Math.round((byte / 255) * 100);

  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const shape = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  // The table of workers
  const state = { sort: "wrong", down: true, page: 0, size: 25, rows: [], chosen: -1 };
  const body = document.querySelector("#worker-table tbody");
  const flagCount = (bits) => bits.toString(2).replaceAll("0", "").length;

  const compare = (a, b) => {
    const column = data[state.sort];
    if (state.sort === "flags") return flagCount(column[a]) - flagCount(column[b]) || column[a] - column[b];
    return (column[a] ?? -1) - (column[b] ?? -1);
  };
  const collator = new Intl.Collator(undefined, { numeric: true });
  const ordered = (rows) => {
    const way = state.down ? -1 : 1;
    const by = state.sort === "names" ? (a, b) => collator.compare(data.names[a], data.names[b]) : compare;
    return rows.sort((a, b) => way * by(a, b) || a - b);
  };

  const select = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    const flag = byId("flag").value;
    const rows = [];
    for (let row = 0; row < lowered.length; row++) {
      const named = lowered[row].includes(wanted);
      if (named && (flag === "all" || (data.flags[row] >> Number(flag)) & 1)) rows.push(row);
    }
    state.rows = ordered(rows);
    state.page = 0;
    showPage();
  };

  const span = (row) => {
    const svg = shape("svg", { class: "span", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    const place = (thousandths) => 2 + (96 * thousandths) / 1000;
    svg.append(
      shape("line", { class: "track", x1: 2, x2: 98, y1: 5, y2: 5 }),
      shape("line", { class: "range", x1: place(data.low[row]), x2: place(data.high[row]), y1: 5, y2: 5 }),
      shape("line", { class: "guess", x1: place(data.chance[row]), x2: place(data.chance[row]), y1: 0, y2: 10 }),
      shape("ellipse", { class: "dot", cx: place(data.skill[row]), cy: 5, rx: 2.2, ry: 4.4 }),
    );
    return svg;
  };

  const flagCell = (row) => {
    const cell = make("td");
    data.flagNames.forEach((name, bit) => {
      if (!((data.flags[row] >> bit) & 1)) return;
      const blind = name === "class-blind" ? (data.blind[row] || []).slice(0, 3).map((k) => data.classes[k]) : [];
      const flag = make("span", name, { class: "flag" });
      if (blind.length) flag.append(": ", make("bdi", blind.join(", ")));
      cell.append(flag);
    });
    return cell;
  };

  const workerRow = (row) => {
    const line = make("tr");
    const head = make("th", undefined, { scope: "row" });
    const button = make("button", undefined, { type: "button", class: "name" });
    button.append(make("bdi", data.names[row]));
    button.addEventListener("click", () => choose(row));
    head.append(button);
    const skill = make("td");
    const inside = make("div", undefined, { class: "skill" });
    const range = make("span", `${share(data.low[row])} to ${share(data.high[row])}`, { class: "soft" });
    inside.append(make("strong", share(data.skill[row])), " ", range, span(row));
    skill.append(inside);
    line.append(head, skill);
    line.append(make("td", count(data.labels[row]), { class: "num" }));
    line.append(make("td", count(Math.round(data.wrong[row])), { class: "num" }));
    for (const [column, digits] of [[data.seconds, 1], [data.pay, 2]])
      if (column) line.append(make("td", column[row]?.toFixed(digits) ?? "", { class: "num" }));
    line.append(flagCell(row));
    return line;
  };

  const showPage = () => {
    const first = state.page * state.size;
    const shown = state.rows.slice(first, first + state.size);
    body.replaceChildren(...shown.map(workerRow));
    byId("back").disabled = state.page === 0;
    byId("next").disabled = first + state.size >= state.rows.length;
    const total = `${count(state.rows.length)} worker${state.rows.length === 1 ? "" : "s"}`;
    byId("where").textContent = shown.length ? `${count(first + 1)} to ${count(first + shown.length)} of ${total}` : "No worker fits.";
  };

  for (const button of document.querySelectorAll("[data-sort]")) {
    button.addEventListener("click", () => {
      const key = button.dataset.sort;
      state.down = state.sort === key ? !state.down : key !== "names";
      state.sort = key;
      for (const head of document.querySelectorAll("#worker-table th[aria-sort]")) head.removeAttribute("aria-sort");
      button.closest("th").setAttribute("aria-sort", state.down ? "descending" : "ascending");
      ordered(state.rows);
      state.page = 0;
      showPage();
    });
  }
  byId("search").addEventListener("input", select);
  byId("flag").addEventListener("change", select);
  byId("size").addEventListener("change", () => { state.size = Number(byId("size").value); state.page = 0; showPage(); });
  const turn = (step, button, other) => { state.page += step; showPage(); if (button.disabled) other.focus(); };
  byId("back").addEventListener("click", () => turn(-1, byId("back"), byId("next")));
  byId("next").addEventListener("click", () => turn(1, byId("next"), byId("back")));

  // The confusion maps
  const ends = () => {
    const style = getComputedStyle(document.documentElement);
    return ["--heat-0", "--heat-1"].map((name) => style.getPropertyValue(name).trim().split(" ").map(Number));
  };
  const mix = ([low, high], p) => low.map((from, i) => Math.round(from + (high[i] - from) * p));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const inkOn = (rgb) => (luminance(rgb) > 0.179 ? "#000" : "#fff");

  const heatTable = (map, title) => {
    const colours = ends();
    const table = make("table", undefined, { class: "heat" });
    table.append(make("caption", title));
    const long = data.classes.some((name) => name.length > 4);
    const top = make("tr");
    top.append(make("th", "true \\ labelled", { scope: "col" }));
    for (const name of data.classes) {
      const head = make("th", undefined, { scope: "col", class: long ? "col long" : "col" });
      head.append(make("span", name));
      top.append(head);
    }
    const head = make("thead");
    head.append(top);
    const rows = make("tbody");
    data.classes.forEach((name, k) => {
      const line = make("tr");
      const label = make("th", undefined, { scope: "row" });
      label.append(make("bdi", name));
      line.append(label);
      for (let s = 0; s < K; s++) {
        const value = map[k * K + s];
        const rgb = mix(colours, value / 255);
        const cell = make("td", percent(value), k === s ? { class: "right" } : {});
        cell.style.background = `rgb(${rgb.join(" ")})`;
        cell.style.color = inkOn(rgb);
        line.append(cell);
      }
      rows.append(line);
    });
    table.append(head, rows);
    return table;
  };

  const heatPicture = (map, title) => {
    const colours = ends();
    const canvas = make("canvas", undefined, { width: K, height: K, role: "img", "aria-label": `${title}: ${K} true classes down, ${K} labels across; the largest mistakes are in the table next to it` });
    const context = canvas.getContext("2d");
    const image = context.createImageData(K, K);
    map.forEach((value, i) => image.data.set([...mix(colours, value / 255), 255], 4 * i));
    context.putImageData(image, 0, 0);
    const figure = make("div");
    figure.append(make("p", title), canvas);
    return figure;
  };

  const showMistakes = (map) => {
    const found = [];
    map.forEach((value, i) => { if (Math.floor(i / K) !== i % K && value > 0) found.push([value, i]); });
    found.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    byId("mistakes").replaceChildren(...found.slice(0, 8).map(([value, i]) => {
      const line = make("tr");
      const head = make("th", undefined, { scope: "row" });
      head.append(make("bdi", data.classes[Math.floor(i / K)]));
      const given = make("td");
      given.append(make("bdi", data.classes[i % K]));
      line.append(head, given, make("td", `${percent(value)} %`, { class: "num" }));
      return line;
    }));
    if (!found.length) byId("mistakes").append(make("tr")), byId("mistakes").firstChild.append(make("td", "None.", { colspan: 3 }));
  };

  const drawMap = () => {
    const row = state.chosen;
    const all = row < 0;
    byId("everyone").setAttribute("aria-pressed", String(all));
    const title = all ? "All workers, each by its share of the labels" : `Worker \u2068${data.names[row]}\u2069, ${count(data.labels[row])} label${data.labels[row] === 1 ? "" : "s"}`;
    byId("chosen").textContent = all ? "" : title;
    const map = all ? population : maps.subarray(row * K * K, (row + 1) * K * K);
    if (!all && row >= data.nMaps) {
      byId("map").replaceChildren(make("p", `This file keeps the maps of the ${count(data.nMaps)} workers with the most labels, to stay small; this worker is not among them.`));
      byId("mistakes").replaceChildren();
      return;
    }
    byId("map").replaceChildren(K <= NUMBERED ? heatTable(map, title) : heatPicture(map, title));
    showMistakes(map);
  };
  const choose = (row) => {
    state.chosen = row;
    drawMap();
    byId("confusion").scrollIntoView();
    byId("map").focus({ preventScroll: true });
  };
  byId("everyone").addEventListener("click", () => { state.chosen = -1; drawMap(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMap);

  // The prices
  const price = byId("price");
  const showPrices = () => {
    const each = Math.max(0, Number(price.value) || 0);
    for (const cell of document.querySelectorAll("[data-labels]")) {
      cell.textContent = (each * Number(cell.dataset.labels)).toLocaleString("en", { maximumFractionDigits: 0 });
    }
  };
  if (price) { price.addEventListener("input", showPrices); showPrices(); }

  // The lists to download
  for (const button of document.querySelectorAll("[data-list]")) {
    button.addEventListener("click", () => {
      const content = new Blob(["\ufeff", data.lists[button.dataset.list]], { type: "text/csv;charset=utf-8" });
      const link = make("a", undefined, { href: URL.createObjectURL(content), download: button.dataset.list });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }

  if (matchMedia("(max-width: 40rem)").matches) {
    byId("size").value = "10";
    state.size = 10;
  }
  select();
  drawMap();
})();
