// The graph: zoom and move it, choose a box to read its card.
(function () {
  "use strict";
  document.documentElement.classList.add("js");
  // On paper there is no click: what stands behind one is opened for printing.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });

  function zoomable(stage) {
    const views = new Map();
    const pointers = new Map();
    let dragged = 0;

    function current() {
      return [...stage.querySelectorAll("svg")].find((svg) => svg.getBoundingClientRect().width > 0);
    }
    function viewOf(svg) {
      if (!views.has(svg)) {
        const box = svg.viewBox.baseVal;
        const whole = { x: box.x, y: box.y, width: box.width, height: box.height };
        views.set(svg, { whole, now: { ...whole } });
      }
      return views.get(svg);
    }
    function show(svg) {
      const { whole, now } = viewOf(svg);
      now.width = Math.min(Math.max(now.width, whole.width / 8), whole.width);
      now.height = (now.width * whole.height) / whole.width;
      now.x = Math.min(Math.max(now.x, whole.x), whole.x + whole.width - now.width);
      now.y = Math.min(Math.max(now.y, whole.y), whole.y + whole.height - now.height);
      svg.setAttribute("viewBox", [now.x, now.y, now.width, now.height].join(" "));
      stage.classList.toggle("zoomed", now.width < whole.width * 0.999);
    }
    function zoom(factor, at) {
      const svg = current();
      if (!svg) return;
      const { now } = viewOf(svg);
      const box = svg.getBoundingClientRect();
      const u = at ? (at.clientX - box.left) / box.width : 0.5;
      const v = at ? (at.clientY - box.top) / box.height : 0.5;
      const width = now.width / factor;
      now.x += u * (now.width - width);
      now.y += v * (now.height - now.height / factor);
      now.width = width;
      show(svg);
    }
    function move(dx, dy) {
      const svg = current();
      if (!svg) return;
      const { now } = viewOf(svg);
      now.x += dx * now.width;
      now.y += dy * now.height;
      show(svg);
    }
    function fit() {
      const svg = current();
      if (!svg) return;
      Object.assign(viewOf(svg).now, viewOf(svg).whole);
      show(svg);
    }

    // A plain wheel scrolls the page; with Ctrl, which is also what a trackpad's pinch sends, it zooms.
    stage.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 300), event);
    }, { passive: false });
    stage.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event);
      dragged = 0;
    });
    stage.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      const svg = current();
      if (!before || !svg) return;
      if (pointers.size === 2) {
        const other = [...pointers.values()].find((one) => one.pointerId !== event.pointerId);
        const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
        zoom(apart(event) / Math.max(apart(before), 1), other);
        dragged = 99;
      } else {
        const box = svg.getBoundingClientRect();
        const dx = event.clientX - before.clientX;
        const dy = event.clientY - before.clientY;
        dragged += Math.hypot(dx, dy);
        if (stage.classList.contains("zoomed")) move(-dx / box.width, -dy / box.height);
      }
      pointers.set(event.pointerId, event);
    });
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
      stage.addEventListener(end, (event) => pointers.delete(event.pointerId));
    }
    // What was a drag is not a click on the box below it.
    stage.addEventListener("click", (event) => {
      if (dragged > 6) event.stopPropagation();
      dragged = 0;
    }, true);
    stage.addEventListener("keydown", (event) => {
      const keys = {
        "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: fit,
        ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0),
        ArrowUp: () => move(0, -0.1), ArrowDown: () => move(0, 0.1),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      if (event.key.startsWith("Arrow") && !stage.classList.contains("zoomed")) return;
      event.preventDefault();
      keys[event.key]();
    });
    return { in: () => zoom(1.4), out: () => zoom(1 / 1.4), fit };
  }

  function graph(root) {
    const stage = root.querySelector(".stage");
    const cards = [...root.querySelectorAll("[data-card]")];
    const nodes = [...root.querySelectorAll("[data-node]")];
    const tools = zoomable(stage);
    let opener = null;

    function choose(number, { focus = false, follow = true } = {}) {
      for (const card of cards) card.hidden = card.dataset.card !== number;
      for (const node of nodes) node.setAttribute("aria-pressed", String(node.dataset.node === number));
      for (const edge of root.querySelectorAll("[data-edge]")) {
        edge.classList.toggle("out", edge.dataset.edge.split(" ")[0] === number);
      }
      root.classList.toggle("chosen", number !== null);
      const card = cards.find((one) => one.dataset.card === number);
      if (!card) return;
      if (focus) card.focus({ preventScroll: true });
      if (!follow) return;
      const box = card.getBoundingClientRect();
      if (box.top > window.innerHeight - 80 || box.bottom < 80) {
        const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
        card.scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
      }
    }
    function close() {
      choose(null);
      if (opener) opener.focus({ preventScroll: true });
      opener = null;
    }

    for (const node of nodes) {
      node.addEventListener("click", () => {
        opener = node;
        choose(node.dataset.node);
      });
      node.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        opener = node;
        choose(node.dataset.node, { focus: true });
      });
    }
    root.addEventListener("click", (event) => {
      const way = event.target.closest("[data-goto]");
      if (way) choose(way.dataset.goto, { focus: true });
      if (event.target.closest("[data-close]")) close();
      const tool = event.target.closest("[data-zoom]");
      if (tool) tools[tool.dataset.zoom]();
    });
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && root.classList.contains("chosen")) close();
    });
    // The first key kernel is open from the start, so that there is something to read.
    const first = nodes.find((node) => node.classList.contains("key")) || nodes[1] || nodes[0];
    for (const card of cards) card.hidden = true;
    if (first) choose(first.dataset.node, { follow: false });
  }

  for (const root of document.querySelectorAll("[data-trail]")) graph(root);
})();
