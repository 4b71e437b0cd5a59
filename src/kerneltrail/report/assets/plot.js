// Small plots in SVG from numbers: bands, lines and dots on axes with round ticks.
window.kerneltrail = (function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const WITHIN_90 = 1.644854;

  function put(parent, name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  // As many digits as the step between ticks needs; powers of ten where plain numbers would be long.
  function written(value, step, largest) {
    if (value === 0 || Math.abs(value) < step * 1e-6) return "0";
    if (largest < 1e5 && step >= 1e-4) {
      return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))).replace("-", "−");
    }
    const power = Math.floor(Math.log10(largest) + 1e-9);
    const digits = Math.max(0, power - Math.floor(Math.log10(step) + 1e-9));
    const raised = [...String(power)].map((letter) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[letter] || "⁻").join("");
    return `${(value / 10 ** power).toFixed(digits).replace("-", "−")}·10${raised}`;
  }

  function ticks(low, high, about) {
    const span = high - low || Math.abs(high) || 1;
    const rough = span / about;
    const power = 10 ** Math.floor(Math.log10(rough));
    const off = (size) => Math.abs(Math.log(size / rough));
    const step = [1, 2, 5, 10].map((times) => times * power).reduce((a, b) => (off(b) < off(a) ? b : a));
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i += 1) found.push(i * step);
    return found.map((value) => ({ value, text: written(value, step, Math.max(Math.abs(low), Math.abs(high))) }));
  }

  // Times are in seconds, and told as the table tells them, without a time zone.
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const STEPS = [60, 120, 300, 600, 900, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 345600, 604800, 1209600];
  const MONTHLY = [1, 2, 3, 4, 6, 12, 24, 60, 120];
  function dated(seconds, step) {
    const date = new Date(1000 * seconds);
    const two = (number) => String(number).padStart(2, "0");
    const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
    if (step < 86400) return seconds % 86400 ? `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}` : day;
    if (step < 2.6e6) return day;
    return step < 3.1e7 ? `${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}` : String(date.getUTCFullYear());
  }
  const MONTH = 2.63e6;
  // The finest steps for which there is room; steps one finer where those would leave fewer than three ticks.
  function dateTicks(low, high, about) {
    const rough = (high - low) / about;
    const every = [...STEPS.map((step) => [step, stepTicks, step]), ...MONTHLY.map((count) => [count * MONTH, monthTicks, count])];
    const place = every.findIndex(([seconds]) => seconds >= rough);
    const chosen = place < 0 ? every.length - 1 : place;
    const [found, finer] = [chosen, Math.max(chosen - 1, 0)].map((one) => every[one][1](low, high, every[one][2]));
    const fit = finer.length * (8 * Math.max(...finer.map((tick) => tick.text.length)) + 10) <= 75 * about;
    return found.length < 3 && fit ? finer : found;
  }
  function stepTicks(low, high, step) {
    const found = [];
    const week = step % 604800 === 0 ? 345600 : 0;  // 1 January 1970 was a Thursday; weeks begin on Mondays
    for (let at = Math.ceil((low - week) / step) * step + week; at <= high; at += step) found.push({ value: at, text: dated(at, step) });
    return found;
  }
  function monthTicks(low, high, months) {
    const found = [];
    const first = new Date(1000 * low);
    for (let month = Math.floor(first.getUTCMonth() / months) * months, at = 0; at <= high; month += months) {
      at = Date.UTC(first.getUTCFullYear(), month) / 1000;
      if (at >= low && at <= high) found.push({ value: at, text: dated(at, months * MONTH) });
    }
    return found;
  }

  function extent(lists) {
    let low = Infinity;
    let high = -Infinity;
    for (const list of lists) {
      for (const value of list) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (!(high > low)) {
      const half = Math.abs(low) * 0.1 || 1;
      return Number.isFinite(low) ? [low - half, high + half] : [0, 1];
    }
    return [low, high];
  }

  const widened = ([low, high], share) => [low - share * (high - low), high + share * (high - low)];
  const around = (mean, sd, sign) => mean.map((value, i) => value + sign * WITHIN_90 * sd[i]);

  // A layer: {kind: "band"|"line"|"dots"|"bars", x, y, low, high, colour, opacity, width, dash}. At the x axis stand
  // numbers, or with `dates` times, or `names`, [{value, text}].
  function plot({ label, xlabel, ylabel, layers, xrange, yrange, zero, dates, names, width = 560, height = 330 }) {
    const margin = { left: 52, right: 14, top: 10, bottom: 42 };
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    svg.setAttribute("class", "plot");
    const [x0, x1] = xrange || widened(extent(layers.map((layer) => layer.x)), 0.02);
    const ys = layers.flatMap((layer) => [layer.y, layer.low, layer.high].filter(Boolean));
    const [y0, y1] = yrange || widened(extent(zero ? [...ys, [0]] : ys), 0.04);
    const heights = ticks(y0, y1, height / 62);
    margin.left = Math.max(52, 28 + 7.8 * Math.max(...heights.map((tick) => tick.text.length)));
    // Names that would run into each other are slanted.
    const longest = names ? 7 * Math.max(...names.map((name) => name.text.length)) : 0;
    const slanted = longest > (width - margin.left - margin.right) / Math.max((names || []).length, 1);
    if (slanted) margin.bottom += Math.min(0.6 * longest, 60);
    const px = (x) => margin.left + ((x - x0) / (x1 - x0)) * (width - margin.left - margin.right);
    const py = (y) => height - margin.bottom - ((y - y0) / (y1 - y0)) * (height - margin.top - margin.bottom);
    const at = (x, y) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`;

    const axes = put(svg, "g", { class: "axes" });
    for (const tick of heights) {
      put(axes, "line", { x1: margin.left, x2: width - margin.right, y1: py(tick.value), y2: py(tick.value) });
      put(axes, "text", { x: margin.left - 7, y: py(tick.value), dy: ".35em", "text-anchor": "end" }, tick.text);
    }
    const across = names || (dates ? dateTicks : ticks)(x0, x1, (width - margin.left) / 75);
    for (const tick of across) {
      put(axes, "line", { class: "tick", x1: px(tick.value), x2: px(tick.value), y1: height - margin.bottom, y2: height - margin.bottom + 4 });
      // A long name at the right end is moved in, so that none of it is cut off.
      const most = slanted ? width : width - 4 * tick.text.length;
      const [x, y] = [Math.min(px(tick.value), most), height - margin.bottom + 17];
      const turned = slanted ? { transform: `rotate(-40 ${x} ${y})`, "text-anchor": "end" } : { "text-anchor": "middle" };
      put(axes, "text", { x: slanted ? x + 4 : x, y: slanted ? y - 3 : y, ...turned }, tick.text);
    }
    put(axes, "text", { class: "name", x: (margin.left + width - margin.right) / 2, y: height - 6, "text-anchor": "middle" }, xlabel);
    put(axes, "text", { class: "name", transform: `translate(12 ${(height - margin.bottom + margin.top) / 2}) rotate(-90)`, "text-anchor": "middle" }, ylabel);
    if (zero) put(svg, "line", { class: "zero", x1: margin.left, x2: width - margin.right, y1: py(0), y2: py(0) });

    const frame = `clip-${Math.random().toString(36).slice(2)}`;
    const clip = put(put(svg, "defs", {}), "clipPath", { id: frame });
    put(clip, "rect", { x: margin.left, y: margin.top - 4, width: width - margin.left - margin.right, height: height - margin.top - margin.bottom + 8 });
    const inside = put(svg, "g", { "clip-path": `url(#${frame})` });
    for (const layer of layers) {
      const { x, colour, opacity = 1 } = layer;
      if (!x.length) continue;
      if (layer.kind === "band") {
        const up = x.map((value, i) => at(value, layer.high[i]));
        const down = x.map((value, i) => at(value, layer.low[i])).reverse();
        put(inside, "path", { d: `M${[...up, ...down].join("L")}Z`, fill: colour, opacity });
      } else if (layer.kind === "line") {
        const d = `M${x.map((value, i) => at(value, layer.y[i])).join("L")}`;
        put(inside, "path", { d, fill: "none", stroke: colour, opacity, "stroke-width": layer.width || 2, "stroke-dasharray": layer.dash || "none", "stroke-linejoin": "round" });
      } else if (layer.kind === "bars") {
        const d = x.map((value, i) => `M${at(value, layer.low[i])}L${at(value, layer.high[i])}`).join("");
        put(inside, "path", { d, stroke: colour, opacity, "stroke-width": layer.width || 3 });
      } else {
        // Dots as lines of no length with round ends: one element however many there are.
        const d = x.map((value, i) => `M${at(value, layer.y[i])}h0`).join("");
        put(inside, "path", { d, stroke: colour, opacity, "stroke-width": layer.width || 4.5, "stroke-linecap": "round", fill: "none" });
      }
    }
    return svg;
  }

  return { plot, put, extent, widened, around, dated };
})();
