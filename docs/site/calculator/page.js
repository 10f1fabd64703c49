"use strict";

/* The page: from the inputs to the answer, the code to copy, the chart and the table. */
(() => {
  const { field } = Inputs;
  const HIGHEST_BETA = 200; // above, averages take too many nodes for a page that answers while one types
  let current = null; // what is shown: inputs, result, sigma, curve
  let tab = 0;

  const digits = (x, n) => String(Number(x.toPrecision(n)));
  const pair = ({ visible, hidden }) => `${visible}-${hidden}`;

  // -- Computing ------------------------------------------------------------------------------------------

  function compute(inputs) {
    const { n, m, c, visible, hidden } = inputs;
    const machine = Theory.makeMachine(visible, hidden, m / n, c);
    const result = Theory.findMaximum(machine);
    const root = Math.sqrt(n + m);
    const usable = Number.isFinite(result.beta) && result.status !== "jump";
    if (machine.closed) {
      const rated = rateScales(n, m, result.beta / root, () => NaN);
      return { inputs, result, usable, root, sigma: result.beta / root, groups: groupScales(rated), curve: [] };
    }
    const centre = result.beta > 0 ? result.beta : 2;
    const many = machine.visible.states > 0; // each point takes a millisecond: fewer of them
    const betas = SCALES.filter(({ units }) => !units).map(({ scale }) => scale(n, m) * root);
    const low = many ? centre / 5 : Math.max(Math.min(...betas, centre / 3), centre / 3000) / 1.5;
    const high = many ? 3 * centre : Math.min(Math.max(...betas, centre * 3) * 1.5, centre * 30, HIGHEST_BETA);
    const asked = betas.filter((beta) => beta <= (many ? high : HIGHEST_BETA));
    const steps = many ? 40 : 180;
    for (let i = 0; i <= steps; i++) asked.push(low * (high / low) ** (i / steps));
    if (usable && !many) for (let i = -40; i <= 40; i++) asked.push(centre * Math.exp(i / 80));
    // in ascending order: two bit layers are followed from one beta to the next
    asked.sort((x, y) => x - y);
    const points = new Map();
    let last;
    for (const beta of asked) {
      if (points.has(beta)) continue;
      const rough = many ? { ...machine, coarseness: 1.7 } : machine;
      const point = Theory.measure(rough, beta, machine.visible.symmetric ? undefined : last);
      if (point.converged) points.set(beta, (last = point));
    }
    const highest = () => Math.max(...[...points.values()].map(({ value }) => Math.abs(value)));
    let unit = usable ? Math.abs(result.value) : highest();
    // it diverges at the transition: cut off near there
    if (result.status === "transition") unit = Math.abs(Theory.measure(machine, 0.97 * result.beta).value);
    const height = (beta) => (points.has(beta) ? Math.abs(points.get(beta).value) / unit : NaN);
    const curve = [...points.values()]
      .filter(({ beta }) => beta >= low && beta <= high && beta > 0)
      .map(({ beta, stability }) => ({ sigma: beta / root, height: height(beta), stability }));
    const groups = groupScales(rateScales(n, m, result.beta / root, (scale) => height(scale * root)));
    return { inputs, result, usable, root, sigma: result.beta / root, groups, curve };
  }

  /* Where the correlation stays above 95 % of its maximum, by interpolation. */
  function wideEnough({ curve, sigma }) {
    const middle = curve.findIndex((point) => point.sigma >= sigma);
    const cross = (step) => {
      for (let i = middle; i > 0 && i < curve.length - 1; i += step) {
        const a = curve[i], b = curve[i + step];
        if (a.height >= 0.95 && b.height < 0.95) {
          return a.sigma + ((b.sigma - a.sigma) * (a.height - 0.95)) / (a.height - b.height);
        }
      }
      return NaN;
    };
    return [cross(-1), cross(1)];
  }

  // -- Showing --------------------------------------------------------------------------------------------

  function fillList(list, notes) {
    list.replaceChildren(
      ...notes.map(({ kind, text }) => {
        const item = document.createElement("li");
        item.className = kind;
        item.textContent = text;
        return item;
      }),
    );
  }

  function showAnswer(state) {
    const { inputs, result, usable, sigma } = state;
    field("answer").hidden = field("buttons").hidden = !usable;
    field("problem").hidden = usable;
    field("problem").textContent = usable ? "" : explainNoMaximum(result.status, inputs);
    fillList(field("notes"), judgeResult(state.inputs, state.result));
    if (!usable) return;
    field("sigma").value = digits(sigma, 6);
    field("beta").textContent = digits(result.beta, 8);
    field("alpha").textContent = digits(inputs.m / inputs.n, 6);
    const [from, to] = wideEnough(state);
    field("range-row").hidden = !(from < to) || result.status === "transition";
    field("range").textContent = from < to ? `σ from ${digits(from, 3)} to ${digits(to, 3)}` : "";
  }

  function showCode() {
    const usable = current && current.usable;
    field("use").hidden = !usable;
    if (!usable) return;
    field("code").textContent = SNIPPETS[tab].write(current.inputs, Number(current.sigma.toPrecision(10)));
  }

  function showChart() {
    field("curve").hidden = !current;
    if (!current) return;
    document.querySelector("#curve figure").hidden = !current.curve.length;
    if (!current.curve.length) {
      showTable();
      return;
    }
    const { inputs, result, usable, sigma, root, curve, groups } = current;
    const transition = result.status === "transition";
    // a package with units of its own stands where its ratio to ours puts it
    const place = (group) => (usable && Number.isFinite(group.ratio) ? group.ratio * sigma : group.sigma);
    const marks = groups.map((group) => ({ label: group.letter, sigma: place(group), height: group.height }));
    if (usable) marks.push({ label: "★", sigma, height: transition ? NaN : 1, ours: true });
    marks.sort((x, y) => x.sigma - y.sigma);
    const over = transition ? "" : usable ? " / maximum" : " / largest";
    const highest = Math.max(1, ...curve.map((point) => point.height));
    Chart.draw(field("chart"), {
      curve, marks, root,
      top: transition ? 1 : Math.min(1.5, highest),
      yLabel: { text: `layer correlation${over}`, ticks: !transition },
      description:
        `Layer correlation against sigma for ${inputs.n} ${inputs.visible} and ${inputs.m} ${inputs.hidden} units` +
        `${usable ? `, largest at sigma ${digits(sigma, 4)}` : ""}. The table below holds the other scales.`,
    });
    const [low, high] = [curve[0].sigma * 0.999, curve[curve.length - 1].sigma * 1.001];
    const off = groups.filter((group) => place(group) > high || place(group) < low);
    field("caption").textContent =
      (usable ? "★ is the σ above; letters are the scales of the table." : "Letters are the scales of the table.") +
      (transition ? " The correlation diverges at the transition; the curve is cut off there." : "") +
      (curve.some((point) => point.stability < 0)
        ? " Shaded: replica symmetry is broken, and the theory is not to be trusted."
        : "") +
      (off.length ? ` Off the axis: ${off.map((g) => g.letter).join(", ")}.` : "");
    showTable();
  }

  function showTable() {
    const { inputs, result, usable, sigma, groups } = current;
    const transition = ["transition", "edge (continuous)"].includes(result.status) && inputs.hidden !== "relu";
    field("share-title").textContent = transition ? "Phase" : "Correlation";
    const phase = (x) => (Math.abs(x - 1) < 1e-9 ? "critical" : x > 1 ? "spin glass" : "paramagnet");
    const share = (x) => {
      if (!Number.isFinite(x)) return "–";
      if (x < 0.0005) return "< 0.1 %";
      return `${x < 0.0995 ? digits(100 * x, 1) : Math.round(100 * x)} %`;
    };
    // a long name may be broken where its words meet
    const named = ({ name, units }) =>
      (name.length > 20 ? name.replace(/([a-z])([A-Z])/g, "$1\u200b$2") : name) +
      (units && units !== pair(inputs) ? ` (${units})` : "");
    const rows = groups.map((group) => ({ ...group, kind: "rival" }));
    const ours = { letter: "★", sigma, ratio: 1, height: 1, kind: "ours", members: [{ name: "σ of this page" }] };
    if (result.status.startsWith("edge") && !transition) ours.edge = true; // no correlation to compare
    if (usable) rows.push(ours);
    rows.sort((x, y) => (usable ? x.ratio - y.ratio : x.sigma - y.sigma));
    field("scales").replaceChildren(
      ...rows.map(({ letter, sigma: scale, ratio, height, phased, edge, units, kind, members }) => {
        const row = document.createElement("tr");
        row.className = kind;
        const cell = (name, content) => {
          const node = document.createElement(name);
          node.append(...content);
          row.append(node);
          return node;
        };
        const badge = document.createElement("span");
        badge.className = `badge ${kind}`;
        badge.textContent = letter;
        cell("td", [badge]);
        cell("th", [members.map(named).join(", ")]).scope = "row";
        cell("td", [digits(scale, 4)]);
        cell("td", [Number.isFinite(ratio) ? digits(ratio, 3) : "–"]);
        cell("td", [edge ? "edge" : phased || (transition && !units) ? phase(ratio) : usable || units ? share(height) : "–"]);
        return row;
      }),
    );
  }

  function update() {
    const inputs = Inputs.read();
    current = inputs && compute(inputs);
    if (current) showAnswer(current);
    else {
      field("answer").hidden = field("buttons").hidden = true;
      field("problem").hidden = false;
      field("problem").textContent = "No result: see the message beside the marked field.";
      fillList(field("notes"), []);
    }
    showCode();
    showChart();
  }

  // -- Acting ---------------------------------------------------------------------------------------------

  let waiting;
  function changed() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      history.replaceState(null, "", Inputs.toHash());
      update();
    }, 200);
  }

  async function copy(text, what) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // no clipboard for this page: the old way, through a selection
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    return done ? `${what} copied` : "Copying is not allowed here; select the text instead";
  }

  /* A button that copies, and says so on itself and to screen readers. */
  function copyButton(id, what, text) {
    const button = field(id), label = button.textContent;
    button.addEventListener("click", async () => {
      const said = await copy(text(), what);
      button.focus();
      button.textContent = field("said").textContent = said;
      setTimeout(() => {
        button.textContent = label;
        field("said").textContent = "";
      }, 2000);
    });
  }

  function makeTabs() {
    const buttons = SNIPPETS.map(({ name }, i) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", id: `tab-${i}`, textContent: name });
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", "panel");
      button.addEventListener("click", () => choose(i));
      return button;
    });
    const choose = (chosen) => {
      tab = chosen;
      buttons.forEach((button, i) => {
        button.setAttribute("aria-selected", String(i === tab));
        button.tabIndex = i === tab ? 0 : -1; // one stop for the Tab key, arrows within
      });
      field("panel").setAttribute("aria-labelledby", `tab-${tab}`);
      showCode();
    };
    field("tabs").append(...buttons);
    field("tabs").addEventListener("keydown", (event) => {
      const to = { ArrowRight: tab + 1, ArrowLeft: tab - 1, Home: 0, End: buttons.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose((to + buttons.length) % buttons.length);
      buttons[tab].focus();
    });
    choose(0);
  }

  /* For tests: #selftest=[[visible, hidden, n, m, c, [beta, ...]], ...] writes what the page computes. */
  function selfTest(cases) {
    const answers = cases.map(([visible, hidden, n, m, c, betas]) => {
      const machine = Theory.makeMachine(visible, hidden, m / n, c);
      const { beta, status, stability } = Theory.findMaximum(machine);
      const curve = (betas || []).map((at) => Theory.measure(machine, at).value);
      const sigma = beta / Math.sqrt(n + m);
      const snippets = Object.fromEntries(
        SNIPPETS.map(({ name, write }) => [name, write({ n, m, c, visible, hidden }, sigma)]),
      );
      return { beta, status, stability, curve, formula: Theory.formula(m / n, c), snippets };
    });
    const scales = Object.fromEntries(SCALES.map(({ name, scale }) => [name, scale(784, 500)]));
    const pre = document.createElement("pre");
    pre.id = "selftest";
    pre.textContent = JSON.stringify({ answers, scales });
    document.body.replaceChildren(pre);
  }

  if (location.hash.startsWith("#selftest=")) {
    selfTest(JSON.parse(decodeURIComponent(location.hash.slice("#selftest=".length))));
    return;
  }
  Inputs.fromHash(location.hash);
  makeTabs();
  update();
  field("inputs").addEventListener("input", changed);
  field("inputs").addEventListener("submit", (event) => event.preventDefault());
  copyButton("copy-sigma", "σ", () => String(Number(current.sigma.toPrecision(12))));
  copyButton("copy-link", "Link", () => location.href.replace(/#.*$/, "") + Inputs.toHash());
  copyButton("copy-code", "Code", () => field("code").textContent);
  window.addEventListener("hashchange", () => {
    Inputs.fromHash(location.hash);
    update();
  });
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) < 1) return;
    width = entry.contentRect.width;
    showChart();
  }).observe(document.querySelector(".drawing"));
})();
