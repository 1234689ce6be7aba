"use strict";
// Shows values under the pointer, read from the curves; a click on a profile's key hides or shows it.
const tip = document.getElementById("tip");
const names = [...document.querySelectorAll("[data-key]")].map(key => key.textContent);

for (const key of document.querySelectorAll("[data-key]")) {
  key.addEventListener("click", () => {
    const shown = key.getAttribute("aria-pressed") === "false";
    key.setAttribute("aria-pressed", shown);
    for (const each of document.querySelectorAll(`[data-p="${key.dataset.key}"]`)) each.classList.toggle("off", !shown);
  });
}

// Position along an axis, 0 to 1 -> the value there as text.
const value = (axis, share) => {
  const [low, high, log, unit] = axis.split("|");
  const at = +log ? low * (high / low) ** share : +low + (high - low) * share;
  return Number(at.toPrecision(3)).toLocaleString("en") + unit;
};

// Height of a curve at x, in SVG coordinates; the x of its points never decreases.
const height = (points, x) => {
  for (let at = 1; at < points.numberOfItems; at++) {
    const from = points.getItem(at - 1), to = points.getItem(at);
    if (from.x <= x && x <= to.x) return to.x > from.x ? from.y + (to.y - from.y) * (x - from.x) / (to.x - from.x) : to.y;
  }
  return null;
};

// One line of text per visible profile, in the order of the curves.
const valuesAt = (picture, inner, x) => {
  const { width, height: tall } = inner;
  const rows = [...picture.querySelectorAll("polyline:not(.off)")].map(line => {
    const y = height(line.points, x * width.baseVal.value);
    return y === null ? null : [y, names[line.dataset.p], value(picture.dataset.y, 1 - y / tall.baseVal.value)];
  });
  return rows.filter(row => row).sort((one, other) => one[0] - other[0]).map(([, name, y]) => `${name}: ${y}`);
};

for (const picture of document.querySelectorAll("figure > svg")) {
  const inner = picture.querySelector(".in");
  if (!inner.querySelector("polyline")) continue;
  picture.addEventListener("pointermove", event => {
    const scale = picture.getBoundingClientRect().width / picture.viewBox.baseVal.width;
    const left = picture.getBoundingClientRect().left + inner.x.baseVal.value * scale;
    const x = (event.clientX - left) / (inner.width.baseVal.value * scale);
    tip.hidden = x < 0 || x > 1;
    if (tip.hidden) return;
    tip.innerText = [value(picture.dataset.x, x), ...valuesAt(picture, inner, x)].join("\n");
    const flip = event.clientX > innerWidth / 2;
    tip.style.left = flip ? "auto" : `${event.clientX + 16}px`;
    tip.style.right = flip ? `${innerWidth - event.clientX + 16}px` : "auto";
    tip.style.top = `${event.clientY + 16}px`;
  });
  picture.addEventListener("pointerleave", () => { tip.hidden = true; });
}
