// What was found of a user: the effect of each covariate, interactions, and what acting adds, each with its words.
window.kerneltrail.effects = (function () {
  "use strict";
  const { plot, put, extent, widened } = window.kerneltrail;
  const BLUE = "#0072B2";
  const PURPLE = "#9B3F75";
  const INK = "#222222";
  const SMALL = { width: 340, height: 225 };
  const MOST = 400;
  const FAR = 6; // times three quarters of the rows' distances: farther out, a row would flatten every curve

  function make(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text.replace(/(\d) %/g, "$1\u00a0%");
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function between(x, xs, ys) {
    let i = 1;
    while (i < xs.length - 1 && xs[i] < x) i += 1;
    const share = xs[i] === xs[i - 1] ? 0 : (x - xs[i - 1]) / (xs[i] - xs[i - 1]);
    return ys[i - 1] + Math.min(Math.max(share, 0), 1) * (ys[i] - ys[i - 1]);
  }

  // How far from what is explained a row may lie and be drawn.
  function reach(rest) {
    const sizes = rest.map(Math.abs).sort((a, b) => a - b);
    return FAR * sizes[Math.floor(0.75 * (sizes.length - 1))] || Infinity;
  }

  // How many rows lie farther out.
  function beyond(rest) {
    const most = reach(rest);
    return rest.filter((left) => Math.abs(left) > most).length;
  }

  // The rows' partial residuals: the effect at a row, plus what is left unexplained of the row. The few
  // rows beyond the ends of the curve are not drawn.
  function residuals(effect, column, rest) {
    const { x } = effect;
    if (effect.names) return besideLevels(effect, column, rest);
    const slack = 1e-3 * (x[x.length - 1] - x[0]) + 1e-9;
    const every = Math.ceil(rest.length / MOST);
    const most = reach(rest);
    const dots = { x: [], y: [] };
    rest.forEach((left, i) => {
      const at = column[i];
      if (i % every || Math.abs(left) > most || at < x[0] - slack || at > x[x.length - 1] + slack) return;
      dots.x.push(at);
      dots.y.push(between(at, x, effect.fitted) + left);
    });
    return dots;
  }

  // The same where values are levels: rows at one level would lie on top of each other, so they stand a little aside.
  function besideLevels({ x, fitted }, column, rest) {
    const every = Math.ceil(rest.length / MOST);
    const most = reach(rest);
    const dots = { x: [], y: [] };
    rest.forEach((left, i) => {
      if (i % every || Math.abs(left) > most) return;
      const far = x.map((value) => Math.abs(value - column[i]));
      const level = far.indexOf(Math.min(...far));
      dots.x.push(level + (((i * 0.618034) % 1) - 0.5) * 0.3);
      dots.y.push(fitted[level] + left);
    });
    return dots;
  }

  // A curve with its band; levels as points with intervals, which no line joins; of what was not found, the rows alone.
  function drawn(curve, { colour, ylabel, label, dots = { x: [], y: [] } }) {
    const { x, mean, low, high, names } = curve;
    const seen = { kind: "dots", ...dots, colour: INK, opacity: 0.35, width: 3 };
    const shared = { label, xlabel: curve.xlabel, ylabel, zero: true, ...SMALL };
    if (!mean && !names) return plot({ ...shared, layers: [seen] });
    if (!names) {
      return plot({ ...shared, layers: [seen, { kind: "band", x, low, high, colour, opacity: 0.28 }, { kind: "line", x, y: mean, colour }] });
    }
    // Levels stand side by side, whatever lies between their values: 69 and 75 would else run into each other.
    const places = x.map((_, i) => i);
    return plot({
      ...shared,
      xrange: [-0.6, x.length - 0.4],
      names: names.map((text, value) => ({ value, text })),
      layers: !mean ? [seen] : [seen, { kind: "bars", x: places, low, high, colour, width: 3 }, { kind: "dots", x: places, y: mean, colour, width: 7 }],
    });
  }

  function card(title, picture, sentence) {
    const figure = make("figure", undefined, { class: "effect" });
    figure.append(make("h4", title));
    if (picture) figure.append(picture);
    if (sentence) figure.append(make("figcaption", sentence));
    return figure;
  }

  // What two covariates add together, cell by cell: blue is more, vermilion less.
  function heat(each, ylabel) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const { width } = SMALL;
    const [left, top, high] = [16 + 7.5 * Math.max(...each.z.map((text) => text.length)), 8, 28];
    const height = top + high * each.z.length + 42;
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, role: "img", class: "plot", "aria-label": `${each.title}: ${ylabel}` })) svg.setAttribute(key, value);
    const wide = (width - left - 24) / each.x.length;
    const most = Math.max(...each.surface.flat().map(Math.abs)) || 1;
    const decimals = Math.min(Math.max(1 - Math.floor(Math.log10(most)), 0), 6);
    each.z.forEach((z, j) => {
      const y = top + high * (each.z.length - 1 - j);
      put(svg, "text", { x: left + 12, y: y + high / 2, dy: ".35em", "text-anchor": "end" }, z);
      each.x.forEach((_, i) => {
        const value = each.surface[i][j];
        const strength = Math.abs(value) / most;
        put(svg, "rect", { x: left + 18 + i * wide, y, width: wide - 1, height: high - 1, fill: value < 0 ? "#D55E00" : BLUE, opacity: 0.06 + 0.6 * strength });
        const text = value.toFixed(decimals).replace(/^-(0(\.0+)?)$/, "$1").replace("-", "−");
        put(svg, "text", { x: left + 18 + (i + 0.5) * wide, y: y + high / 2, dy: ".35em", "text-anchor": "middle", class: "cell" }, text);
      });
    });
    const below = top + high * each.z.length;
    each.x.forEach((x, i) => put(svg, "text", { x: left + 18 + (i + 0.5) * wide, y: below + 15, "text-anchor": "middle" }, x));
    put(svg, "text", { class: "name", x: left + 18 + (wide * each.x.length) / 2, y: below + 34, "text-anchor": "middle" }, each.xlabel);
    put(svg, "text", { class: "name", transform: `translate(12 ${top + (high * each.z.length) / 2}) rotate(-90)`, "text-anchor": "middle" }, each.zlabel);
    return svg;
  }

  function effects(user, step, target) {
    const cards = step.effects.map((effect) => {
      const picture = drawn(effect, {
        colour: BLUE, ylabel: target, label: `Effect of ${effect.title} on ${target} with its 90 % band`,
        dots: residuals(effect, user.columns[effect.column].slice(step.rows - step.rest.length, step.rows), step.rest),
      });
      return card(effect.title, picture, effect.sentence);
    });
    for (const each of step.interactions) cards.push(card(each.title, heat(each, target), each.sentence));
    return cards;
  }

  // The sentences are on the average, on each feature, and then on what holds for all of them.
  function treatment(found, action, target) {
    const curves = [found.average, ...found.features];
    const cards = curves.map((curve, i) => card(
      curve.title,
      drawn(curve, { colour: PURPLE, ylabel: target, label: `What ${action} adds to ${target}: ${curve.title}` }),
      found.sentences[i],
    ));
    const rest = found.sentences.slice(curves.length).join(" ");
    return rest ? [...cards, make("p", rest, { class: "quiet note" })] : cards;
  }

  return { make, effects, treatment, beyond };
})();
