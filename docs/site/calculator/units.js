"use strict";

/* Unit types beyond spins and bits: averages of categorical units in a random field, and the edge of machines
   whose layer correlation has no maximum. The same formulas as theory/layers/softmax.py and theory/edge.py. */
const Units = (() => {
  const TERMS = 60;

  /* The normal distribution function: a series near zero, a continued fraction further out. */
  function normal(x) {
    const a = Math.abs(x), density = Math.exp(-0.5 * a * a) / Math.sqrt(2 * Math.PI);
    let tail;
    if (a < 2.5) {
      let term = a, sum = a;
      for (let k = 3; term > 1e-17 * sum; k += 2) sum += term *= (a * a) / k;
      tail = 0.5 - density * sum;
    } else {
      let fraction = 0;
      for (let k = TERMS; k > 0; k--) fraction = k / (a + fraction);
      tail = density / (a + fraction);
    }
    return x < 0 ? tail : 1 - tail;
  }

  /* Mean and variance of a normal variable of mean a and variance 1 that is cut off at zero. */
  function halfMoments(a) {
    if (a > -5) {
      const r = Math.exp(-0.5 * a * a) / Math.sqrt(2 * Math.PI) / normal(a);
      return [a + r, 1 - r * (a + r)];
    }
    let fraction = 0;
    for (let k = 40; k > 1; k--) fraction = k / (fraction - a);
    const mean = 1 / (fraction - a);
    return [mean, mean * (fraction - mean)];
  }

  // -- Categorical units ----------------------------------------------------------------------------------

  const WIDE = 1.5, LONG = 4.5, ORDERS = 7;

  /* phi(u) = E exp(-exp(u + s z)) and its derivatives, and phi m_2 - m_1**2, at one u. */
  function narrow(u, s, nodes, into) {
    into.fill(0);
    let first = 0, second = 0;
    const t = Math.exp(u);
    for (const [z, w] of nodes) {
      const y = t * Math.exp(s * z), d = w * Math.exp(-y), far = t * Math.expm1(s * z);
      into[0] += d;
      into[1] -= y * d;
      into[2] += y * (y - 1) * d;
      into[3] -= y * (1 + y * (y - 3)) * d;
      into[4] += y * (-1 + y * (7 + y * (y - 6))) * d;
      into[5] -= y * (1 + y * (-15 + y * (25 + y * (y - 10)))) * d;
      into[6] += y * (-1 + y * (31 + y * (-90 + y * (65 + y * (y - 15))))) * d;
      first += far * d;
      second += far * far * d;
    }
    const phi = Math.max(into[0], 1e-250), mean = first / phi;
    if (s > 0.1) return phi * phi * (second / phi - mean * mean);
    let spread = 0; // a second pass, without cancellation
    for (const [z, w] of nodes) {
      const far = t * Math.expm1(s * z) - mean;
      spread += far * far * w * Math.exp(-t * Math.exp(s * z));
    }
    return phi * spread;
  }

  /* The same for wide fields, as a mixture of normal distributions over the Gumbel variable. */
  function broad(u, s, nodes, into) {
    into.fill(0);
    for (const [w, weight] of nodes) {
      const k = (w - u) / s;
      into[0] += weight * normal(k);
      let density = (-weight * Math.exp(-0.5 * k * k)) / Math.sqrt(2 * Math.PI);
      if (density === 0) continue;
      let before = 0, polynomial = 1;
      for (let order = 1; order < ORDERS; order++) {
        into[order] += (density /= s) * polynomial;
        [before, polynomial] = [polynomial, k * polynomial - (order - 1) * before];
      }
    }
    return into[0] * (into[2] - into[1]) - into[1] * into[1];
  }

  function makeNodes(s, coarseness) {
    const nodes = [];
    if (s > WIDE) {
      for (let w = -40; w < 4.2; w += 0.2 * coarseness) nodes.push([w, 0.2 * coarseness * Math.exp(w - Math.exp(w))]);
      return nodes;
    }
    const step = coarseness * Math.min(0.5, 0.24 / Math.max(s, 1e-300)), half = Math.ceil(9 / step);
    for (let i = -half; i <= half; i++) nodes.push([i * step, Math.exp(-0.5 * i * step * i * step)]);
    const total = nodes.reduce((sum, node) => sum + node[1], 0);
    return nodes.map(([z, w]) => [z, w / total]);
  }

  /* Overlap less 1/q, its two derivatives in qhat, and E ||Cov||**2. */
  function averageStates(q, qhat, coarseness) {
    const s = Math.sqrt(qhat), nodes = makeNodes(s, coarseness), d = new Float64Array(ORDERS);
    const left = s < LONG ? s * s + 21 : 9 * s + 1;
    const step = coarseness * 0.2 * Math.max(1, s / WIDE);
    let overlap = 0, slope = 0, bend = 0, squared = 0;
    for (let u = -left; u < 4 + 9 * s + step; u += step) {
      const e = (s > WIDE ? broad : narrow)(u, s, nodes, d);
      const phi = Math.max(d[0], 1e-250), power = step * phi ** (q - 2);
      if (power === 0) continue;
      const e1 = 0.5 * (d[2] * (d[2] - d[1]) + phi * (d[4] - d[3]) - 2 * d[1] * d[3]);
      const e2 = 0.25 * (d[4] * (d[2] - d[1]) + 2 * d[2] * (d[4] - d[3]) + phi * (d[6] - d[5]) -
        2 * (d[3] * d[3] + d[1] * d[5]));
      const ratio = q > 2 ? d[2] / phi : 0;
      overlap += power * e;
      slope += power * (e1 + 0.5 * (q - 2) * e * ratio);
      bend += power * (e2 + (q > 2 ? (q - 2) * (e1 * ratio + (0.25 * e * d[4]) / phi) : 0) +
        0.25 * (q - 2) * (q - 3) * e * ratio * ratio);
      const m1 = -d[1], m2 = d[2] + m1, m3 = -d[3] + 3 * m2 - m1, m4 = d[4] + 6 * m3 - 7 * m2 + m1;
      squared += power * (phi * (m2 - m3 + m4 / 6) + ((q - 1) / 6) * m2 * m2);
    }
    return { overlap: (q - 1) * overlap, slope: (q - 1) * slope, bend: (q - 1) * bend, squared: q * squared };
  }

  // -- Edges ----------------------------------------------------------------------------------------------

  const stateCount = (name) => {
    const match = /^categorical\((\d+)\)$/.exec(name);
    return match ? Number(match[1]) : 0;
  };

  /* The variance of a unit without field and the sum of the squares of its covariance matrix. */
  function freeVariances(name) {
    const q = stateCount(name);
    if (q) return [(q - 1) / q, (q - 1) / (q * q)];
    return name === "bit" ? [0.25, 0.0625] : [1, 1];
  }

  /* The variance of a centred ReLU unit of bias c whose precision is 1 - bend. */
  function reluVariance(c, bend) {
    const width = 1 / Math.sqrt(1 - bend);
    const mean = (lam) => width * halfMoments((c - bend * lam) * width)[0];
    let low = 0, high = mean(0);
    for (let i = 0; i < 200 && high - low > 4e-16 * high; i++) {
      const middle = 0.5 * (low + high);
      if (mean(middle) > middle) low = middle;
      else high = middle;
    }
    return width * width * halfMoments((c - bend * 0.5 * (low + high)) * width)[1];
  }

  /* The edge of a bounded visible layer beside ReLU units. */
  function reluEdge(visible, alpha, c) {
    const [trace, square] = freeVariances(visible);
    const gain = (b) => alpha * b * b * square * reluVariance(c, b * trace) ** 2;
    let low = 0, high = (1 - 1e-12) / trace;
    const last = gain(high);
    const scale = (b) => Math.sqrt(b * (1 + alpha));
    if (last < 1) return { beta: scale(1 / trace), status: "edge (condensation)", stability: 1 - last };
    for (let i = 0; i < 100; i++) {
      const middle = 0.5 * (low + high);
      if (gain(middle) < 1) low = middle;
      else high = middle;
    }
    return { beta: scale(0.5 * (low + high)), status: "edge (continuous)", stability: 0 };
  }

  const isSymmetric = (name, c) => c === 0 && (name === "spin" || name === "gaussian" || stateCount(name) > 0);

  /* The scale of machines without a curve of the layer correlation on this page; null for all others. */
  function closedForm(visible, hidden, alpha, c) {
    if (hidden === "relu") {
      return visible === "gaussian" ? { beta: NaN, status: "unbounded" } : reluEdge(visible, alpha, c);
    }
    const gaussian = visible === "gaussian" || hidden === "gaussian";
    if (!gaussian && !stateCount(visible)) return null;
    const [traceV, squareV] = freeVariances(visible), [traceH, squareH] = freeVariances(hidden);
    if (!(isSymmetric(visible, 0) && isSymmetric(hidden, c))) {
      return gaussian ? { beta: NaN, status: "package" } : null;
    }
    if (visible === "gaussian" && hidden === "gaussian") return { beta: NaN, status: "unbounded" };
    const loop = Math.sqrt(alpha * squareV * squareH);
    // a Gaussian unit's variance grows with the other layer's
    const bend = visible === "gaussian" ? alpha * traceH : hidden === "gaussian" ? traceV : 0;
    const status = stateCount(visible) ? "edge (continuous)" : "transition";
    return { beta: Math.sqrt((1 + alpha) / (loop + bend)), status, stability: 0, value: -Infinity };
  }

  return { averageStates, stateCount, closedForm, normal, halfMoments };
})();
