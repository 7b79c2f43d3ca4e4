// Zoom and pan of the image of a task: wheel, pinch, drag, buttons, and the keys + and -.
"use strict";

const MOST = 12;

function zoomable(frame, image, buttons) {
  const at = { scale: 1, x: 0, y: 0 };
  const down = new Map();

  function draw() {
    const room = (side) => frame[`client${side}`] * (at.scale - 1) / 2;
    at.x = Math.max(-room("Width"), Math.min(room("Width"), at.x));
    at.y = Math.max(-room("Height"), Math.min(room("Height"), at.y));
    image.style.transform = `translate(${at.x}px, ${at.y}px) scale(${at.scale})`;
    frame.classList.toggle("zoomed", at.scale > 1);
  }

  function reset() {
    Object.assign(at, { scale: 1, x: 0, y: 0 });
    draw();
  }

  // What is under (left, top), measured from the middle of the frame, stays there.
  function by(factor, left = 0, top = 0) {
    const scale = Math.max(1, Math.min(MOST, at.scale * factor));
    at.x = left - (left - at.x) * scale / at.scale;
    at.y = top - (top - at.y) * scale / at.scale;
    at.scale = scale;
    draw();
  }

  function fromMiddle(event) {
    const box = frame.getBoundingClientRect();
    return [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
  }

  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    by(Math.exp(-event.deltaY / 400), ...fromMiddle(event));
  }, { passive: false });
  frame.addEventListener("dblclick", (event) => { if (at.scale > 1) reset(); else by(3, ...fromMiddle(event)); });
  frame.addEventListener("pointerdown", (event) => { down.set(event.pointerId, fromMiddle(event)); frame.setPointerCapture(event.pointerId); });
  frame.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const now = fromMiddle(event), other = [...down].find(([id]) => id !== event.pointerId);
    if (other) {
      const apart = (point) => Math.hypot(point[0] - other[1][0], point[1] - other[1][1]);
      by(apart(now) / Math.max(1, apart(before)), other[1][0], other[1][1]);
    } else {
      at.x += now[0] - before[0];
      at.y += now[1] - before[1];
      draw();
    }
    down.set(event.pointerId, now);
  });
  for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, (event) => down.delete(event.pointerId));
  for (const button of buttons.querySelectorAll("button")) {
    button.addEventListener("click", () => { if (button.dataset.zoom === "0") reset(); else by(Number(button.dataset.zoom)); });
  }
  return { by, reset };
}
