"use strict";

/* The layer correlation against the scale of the weights, as inline SVG drawn in real pixels, so that text
   keeps its size on a phone. */
const Chart = (() => {
  const LEFT = 60, RIGHT = 12, LANE = 21, PLOT_HEIGHT = 230, BOTTOM = 78;

  function element(name, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  /* 1, 2 and 5 times the powers of ten between two numbers; powers alone where that would be many. */
  function ticks(low, high, room) {
    const decades = Math.log10(high / low);
    const steps = room / decades > 130 ? [1, 2, 5] : [1];
    const every = room / decades < 34 ? 2 : 1;
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      if (power % every) continue;
      for (const step of steps) {
        const tick = Number(`${step}e${power}`);
        if (tick >= low && tick <= high) found.push(tick);
      }
    }
    return found;
  }

  const show = (x) => (x < 1e-3 || x >= 1e5 ? x.toExponential(0).replace("+", "") : `${x}`);

  /* The lane of each mark, so that badges beside each other do not touch. */
  function assignLanes(positions) {
    const ends = [];
    return positions.map((x) => {
      let lane = ends.findIndex((end) => x - end >= LANE);
      if (lane < 0) lane = ends.length;
      ends[lane] = x;
      return lane;
    });
  }

  /* curve: [{sigma, height, stability}], height 1 at the maximum; marks: [{label, sigma, height, ours}]. */
  function draw(svg, { curve, marks, root, top, yLabel, description }) {
    const width = Math.max(280, svg.parentNode.clientWidth);
    const low = curve[0].sigma, high = curve[curve.length - 1].sigma;
    const inner = width - LEFT - RIGHT;
    const x = (sigma) => LEFT + (inner * Math.log(sigma / low)) / Math.log(high / low);
    const shown = marks.filter((mark) => mark.sigma >= low * 0.999 && mark.sigma <= high * 1.001);
    const lanes = assignLanes(shown.map((mark) => x(mark.sigma)));
    const head = 12 + LANE * (1 + Math.max(0, ...lanes));
    const base = head + PLOT_HEIGHT;
    const y = (height) => base - (PLOT_HEIGHT * Math.min(height, top * 1.02)) / (top * 1.02);
    const total = base + BOTTOM;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${total}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", total);
    svg.setAttribute("aria-label", description);
    const put = (name, attributes, text) => svg.appendChild(element(name, attributes, text));

    drawBroken(put, curve, x, head, base, LEFT + inner);
    for (const tick of [0, 0.5, 1, 1.5].filter((t) => t <= top)) {
      put("line", { x1: LEFT, x2: LEFT + inner, y1: y(tick), y2: y(tick), class: tick ? "grid" : "axis" });
      if (yLabel.ticks) put("text", { x: LEFT - 6, y: y(tick) + 4, class: "tick end" }, `${tick * 100}%`);
    }
    const halfway = (head + base) / 2;
    put("text", { x: 14, y: halfway, class: "label", transform: `rotate(-90 14 ${halfway})` }, yLabel.text);
    const axes = [
      { factor: 1, at: base + 18, name: "σ, standard deviation of the weights", ticked: true },
      { factor: root, at: base + 54, name: "β = σ√(n + m)", ticked: false },
    ];
    for (const { factor, at, name, ticked } of axes) {
      for (const tick of ticks(low * factor, high * factor, inner)) {
        const px = x(tick / factor);
        if (ticked) put("line", { x1: px, x2: px, y1: base, y2: base + 5, class: "axis" });
        put("text", { x: Math.min(Math.max(px, LEFT + 4), LEFT + inner - 6), y: at, class: "tick" }, show(tick));
      }
      put("text", { x: LEFT + inner / 2, y: at + 16, class: "label" }, name);
    }
    shown.forEach((mark, i) => {
      const px = x(mark.sigma), py = 12 + LANE * lanes[i];
      put("line", { x1: px, x2: px, y1: py + 9, y2: base, class: mark.ours ? "ours" : "rival" });
    });
    const path = curve.map((point) => `${x(point.sigma).toFixed(1)} ${y(point.height).toFixed(1)}`);
    put("path", { d: `M${path.join("L")}`, class: "curve" });
    shown.forEach((mark, i) => {
      const px = x(mark.sigma), py = 12 + LANE * lanes[i], kind = mark.ours ? "ours" : "rival";
      if (Number.isFinite(mark.height)) {
        put("circle", { cx: px, cy: y(mark.height), r: mark.ours ? 5 : 3.5, class: `dot ${kind}` });
      }
      put("circle", { cx: px, cy: py, r: 9, class: `badge ${kind}` });
      put("text", { x: px, y: py + 4, class: `letter ${kind}` }, mark.label);
    });
  }

  /* Shade where replica symmetry is broken. */
  function drawBroken(put, curve, x, head, base, right) {
    const first = curve.findIndex((point) => point.stability < 0);
    if (first < 0) return;
    const next = curve.slice(first).findIndex((point) => point.stability >= 0);
    const from = x(curve[first].sigma), to = next < 0 ? right : x(curve[first + next].sigma);
    put("rect", { x: from, y: head, width: to - from, height: base - head, class: "broken" });
    const words = ["replica symmetry", "broken"];
    if (to - from < 105) return;
    words.forEach((word, i) => put("text", { x: to - 6, y: head + 18 + 14 * i, class: "tick end" }, word));
  }

  return { draw };
})();
