// One user at a time: after every batch the rows with the fit, what was found, and for experts the kernel and its parts.
(function () {
  "use strict";
  const source = document.getElementById("trail-data");
  const root = document.querySelector("[data-explorer]");
  if (!source || !root) return;
  const { plot, put, extent, widened, around } = window.kerneltrail;
  const data = JSON.parse(source.textContent);
  const BLUE = "#0072B2";
  const ORANGE = "#E69F00";
  const INK = "#222222";
  const { make, effects, treatment, beyond } = window.kerneltrail.effects;
  const find = (name) => root.querySelector(`[data-${name}]`);
  const [select, slider, standing, strip, mini, fitted, words, parts] =
    ["user", "batch", "standing", "strip", "mini", "fit", "words", "parts"].map(find);

  const percent = (share) => (share > 0.995 && share < 1 ? "> 99 %" : share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`);

  // --- the graph, a copy without its own controls -------------------------------------------------------------------
  const drawings = [...document.querySelectorAll("[data-trail] svg.drawing")].map((svg) => {
    const copy = svg.cloneNode(true);
    copy.setAttribute("aria-hidden", "true");
    copy.removeAttribute("role");
    copy.removeAttribute("aria-label");
    for (const node of copy.querySelectorAll("[data-node]")) {
      for (const name of ["role", "tabindex", "aria-pressed", "aria-label"]) node.removeAttribute(name);
    }
    mini.insertBefore(copy, mini.firstChild);
    return copy;
  });
  mini.hidden = !drawings.length;

  function walk(path) {
    const taken = new Set(path.map((node, i) => `${i ? path[i - 1] : 0} ${node}`));
    for (const svg of drawings) {
      for (const old of svg.querySelectorAll(".jump")) old.remove();
      const missing = new Set(taken);
      for (const edge of svg.querySelectorAll("[data-edge]")) {
        const on = taken.has(edge.dataset.edge);
        edge.classList.toggle("on", on);
        missing.delete(edge.dataset.edge);
      }
      for (const node of svg.querySelectorAll("[data-node]")) {
        const number = Number(node.dataset.node);
        node.classList.toggle("on", number === 0 || path.includes(number));
        node.classList.toggle("here", number === path[path.length - 1]);
      }
      const boxOf = (number) => svg.querySelector(`[data-node="${number}"] rect`);
      const centre = (number) => {
        const box = boxOf(number);
        const [x, y, w, h] = ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name)));
        return [x + w / 2, y + h / 2];
      };
      for (const step of missing) {
        if (!step.split(" ").every(boxOf)) continue;  // a kernel of another structure than the one drawn
        const [a, b] = step.split(" ").map(centre);
        // Bent to one side, so that it keeps clear of what stands between the two.
        const bend = [(a[0] + b[0]) / 2 + 0.35 * (b[1] - a[1]), (a[1] + b[1]) / 2 - 0.35 * (b[0] - a[0])];
        const line = put(svg, "path", { class: "jump", d: `M${a}Q${bend} ${b}` });
        svg.insertBefore(line, svg.querySelector(".count"));  // below the counts, whose paper keeps it off their letters
      }
    }
  }

  // --- plots ----------------------------------------------------------------------------------------------------------
  function ranges(user) {
    // The same axes for every batch, so that stepping shows what changes.
    const curves = user.steps.filter((step) => step.fit);
    const lists = [user.y];
    const last = curves[curves.length - 1].fit;
    if (last.total) lists.push(...last.total);
    return { xrange: widened(extent([user.x]), 0.05), yrange: widened(extent(lists), 0.06) };
  }

  // Rows in time whose covariates jump: points with intervals, which no line joins.
  function overRows(x, mean, ends, colour, thick) {
    const bars = ends.map(([[low, high], opacity]) => ({ kind: "bars", x, low, high, colour, opacity, width: thick }));
    return [...bars, { kind: "dots", x, y: mean, colour, width: 3.6 }];
  }

  function drawFit(user, step) {
    fitted.replaceChildren();
    if (!step.fit) return;
    const seen = step.rows;
    const x = step.fit.x || user.x.slice(0, seen);
    const { mean, sd, total } = step.fit;
    const band = [around(mean, sd, -1), around(mean, sd, 1)];
    const narrow = root.clientWidth < 560;
    const width = narrow ? 360 : 720;
    const upto = step.next ? seen + step.next.mean.length : seen;
    const [seenDots, nextDots] = [[0, seen, INK, 0.8], [seen, upto, "#8a8a8a", 0.8]].map(([from, to, colour, opacity]) => (
      { kind: "dots", x: user.x.slice(from, to), y: user.y.slice(from, to), colour, opacity, width: user.byRow ? 3.6 : 4.5 }
    ));
    const thick = Math.min(Math.max((0.8 * (width - 70)) / user.x.length, 1), 5);
    let layers;
    if (user.byRow) {
      layers = overRows(x, mean, [[total, 0.16], [band, 0.35]], BLUE, thick);
      if (step.next) layers.push(...overRows(user.x.slice(seen, upto), step.next.mean, [[step.next.ends, 0.4]], ORANGE, thick));
    } else {
      layers = [
        { kind: "band", x, low: total[0], high: total[1], colour: BLUE, opacity: 0.12 },
        { kind: "band", x, low: band[0], high: band[1], colour: BLUE, opacity: 0.3 },
        { kind: "line", x, y: mean, colour: BLUE },
      ];
    }
    layers.push(nextDots, seenDots);
    fitted.append(plot({
      label: `Observations of ${user.name} and the fit after ${seen} rows`,
      xlabel: user.xlabel, ylabel: data.target, layers, dates: user.dates, ...ranges(user),
      width, height: narrow ? 270 : 350,
    }));
    const legend = make("figcaption");
    const key = (colour, text) => {
      const item = make("span", undefined, { class: "legend" });
      item.append(make("span", undefined, { class: "swatch", style: `background:${colour}` }), text);
      legend.append(item);
    };
    key(INK, "seen");
    if (step.next) key("#8a8a8a", "next batch");
    key(BLUE, "fit, with 90 % of the function (dark) and of observations (light)");
    if (user.byRow && step.next) key(ORANGE, "prediction of the next batch, with 90 %");
    if (step.next) {
      const { inside, simple } = step.next;
      const others = Object.entries(simple).map(([name, error]) => `${name} ${error}`).join(", ");
      legend.append(make("br"), `Next batch, predicted before it was seen: typical error (RMSE) ${step.next.rmse}${others ? ` (${others})` : ""}; ${inside} of ${upto - seen} inside the 90 % interval.`);
    }
    if (user.errors) legend.append(make("br"), user.errors);
    fitted.append(legend);
  }

  // Cards in rows that are equally full on a broad screen: five as three and two. The words of one or two cards stand
  // beside their pictures, so that nothing is empty.
  function lay(place, cards) {
    const count = cards.filter((card) => card.tagName === "FIGURE").length;
    place.style.setProperty("--columns", Math.ceil(count / Math.ceil(count / 4)) || 1);
    place.classList.toggle("few", count < 3);
    place.replaceChildren(...cards);
  }

  function drawFound(user, step) {
    find("findings").hidden = !step.fit;
    if (!step.fit) return;
    find("found").textContent = `What was found of ${user.name}`;
    find("lead").textContent = step.lead;
    const dots = step.rest.length < step.rows ? `the newest ${step.rest.length} rows` : "the rows seen";
    const out = beyond(step.rest);
    const far = out ? `; ${out} that ${out === 1 ? "lies" : "lie"} far out ${out === 1 ? "is" : "are"} not drawn` : "";
    find("note").textContent = `In the panels below, each curve is all that changes with one covariate, less its average, with its 90 % band. Dots are ${dots}, less everything else${far}.${step.interactions.length ? " In a table of two covariates: what they add together beyond what each adds by itself." : ""} ${step.notes.join(" ")}`.replace(/(\d) %/g, "$1\u00a0%");
    lay(find("effects"), effects(user, step, data.target));
    const place = find("treatment");
    place.replaceChildren();
    if (!step.treatment) return;
    const panels = make("div", undefined, { class: "effects" });
    lay(panels, treatment(step.treatment, data.action, data.target));
    place.append(make("h3", `What ${data.action} adds for ${user.name}`), panels);
  }

  function drawParts(user, step) {
    parts.replaceChildren();
    for (const part of step.parts || []) {
      const { x, mean, sd } = part.curve;
      const colour = BLUE;
      const figure = make("figure");
      figure.append(make("h4", `${part.title}: ${percent(part.share)} of the variation`));
      figure.append(plot({
        label: `${part.title} against ${part.xlabel}`, xlabel: part.xlabel, ylabel: data.target,
        layers: [
          { kind: "band", x, low: around(mean, sd, -1), high: around(mean, sd, 1), colour, opacity: 0.25 },
          { kind: "line", x, y: mean, colour },
          { kind: "dots", x: part.x, y: part.y, colour: INK, opacity: 0.45, width: 3 },
        ],
        zero: true, width: 360, height: 250,
      }));
      parts.append(figure);
    }
    if (parts.childElementCount) {
      const shared = data.shared ? " They are what this user adds to the line that all pilot users share." : "";
      parts.append(make("p", `The parts of the fit, each with its 90 % band; dots are the rows seen, less the other parts.${shared}`, { class: "quiet note" }));
    }
  }

  function drawWords(user, step) {
    const name = data.nodes[step.node].name;
    words.replaceChildren(make("h3", step.rows ? `After ${step.rows} rows: ${name}` : name));
    const list = make("ul");
    for (const text of step.words) list.append(make("li", text));
    words.append(list);
    if (!step.probabilities || user.pilot) return;
    if (data.nodes.length === 2) {
      words.append(make("p", "The graph has this kernel only, so its probability is 100 % by construction.", { class: "quiet" }));
      return;
    }
    const chances = make("div", undefined, { class: "chances" });
    chances.append(make("h4", "How probable each kernel is"));
    const order = step.probabilities.map((share, i) => [share, i + 1]).sort((a, b) => b[0] - a[0]).slice(0, 6);
    for (const [share, node] of order) {
      if (share < 0.001) continue;
      const row = make("div", undefined, { class: "chance" });
      const bar = make("span", undefined, { class: "bar" });
      bar.append(make("i", undefined, { style: `width:${(100 * share).toFixed(1)}%;background:${data.nodes[node].colour}` }));
      row.append(make("span", data.nodes[node].name), bar, make("b", percent(share)));
      chances.append(row);
    }
    words.append(chances);
  }

  // --- the controls ---------------------------------------------------------------------------------------------------
  let user = data.users[0];
  let batch = user.steps.length;

  function show() {
    const step = user.steps[batch - 1];
    slider.max = user.steps.length;
    slider.value = batch;
    slider.setAttribute("aria-valuetext", `batch ${batch} of ${user.steps.length}`);
    standing.textContent = `batch ${batch} of ${user.steps.length}${step.rows ? `, ${step.rows} rows` : ""}`;
    find("step=\"-1\"").disabled = batch === 1;
    find("step=\"1\"").disabled = batch === user.steps.length;
    strip.replaceChildren(...user.steps.map((own, i) => {
      const item = make("li");
      const button = make("button", undefined, { type: "button", "aria-pressed": String(i + 1 === batch), style: `border-color:${data.nodes[own.node].colour}` });
      button.append(make("span", own.rows ? `${own.rows} rows` : `batch ${i + 1}`, { class: "quiet" }), make("span", data.nodes[own.node].name));
      button.addEventListener("click", () => go(i + 1));
      item.classList.toggle("ahead", i + 1 > batch);
      item.append(button);
      return item;
    }));
    walk(user.steps.slice(0, batch).map((own) => own.node));
    drawFit(user, step);
    drawFound(user, step);
    drawWords(user, step);
    drawParts(user, step);
  }
  function go(to) {
    const within = strip.contains(document.activeElement);
    batch = Math.min(Math.max(to, 1), user.steps.length);
    show();
    if (within) strip.querySelectorAll("button")[batch - 1].focus();
  }

  for (const [title, pilot] of [["Pilot users", true], ["New users", false]]) {
    const group = make("optgroup", undefined, { label: title });
    data.users.forEach((one, i) => {
      if (one.pilot === pilot) group.append(make("option", one.name, { value: i }));
    });
    if (group.childElementCount) select.append(group);
  }
  select.addEventListener("change", () => {
    user = data.users[Number(select.value)];
    batch = user.steps.length;
    show();
  });
  user = data.users[Number(select.value) || 0];
  batch = user.steps.length;
  slider.addEventListener("input", () => go(Number(slider.value)));
  for (const by of [-1, 1]) find(`step="${by}"`).addEventListener("click", () => go(batch + by));
  let width = root.clientWidth < 560;
  window.addEventListener("resize", () => {
    if (width !== root.clientWidth < 560) show();
    width = root.clientWidth < 560;
  });
  show();
})();
