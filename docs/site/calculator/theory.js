"use strict";

/* The replica-symmetric theory of a random restricted Boltzmann machine, and the maximum of its layer
   correlation. The same equations as paramagnet's Python package (theory/*.py), for one machine at a time. */
const Theory = (() => {
  const UNITS = {
    spin: { name: "spin", low: -1, high: 1, symmetric: true },
    bit: { name: "bit", low: 0, high: 1, symmetric: false },
  };

  /* The unit of a name; `square` is the largest overlap. */
  function unitOf(name) {
    const states = Units.stateCount(name);
    return states ? { name, states, symmetric: true, square: 1 - 1 / states } : { square: 1, ...UNITS[name] };
  }

  // -- Numbers that carry their derivative: [value, d value/d ln beta] ------------------------------------

  const add = (x, y) => [x[0] + y[0], x[1] + y[1]];
  const sub = (x, y) => [x[0] - y[0], x[1] - y[1]];
  const scale = (factor, x) => [factor * x[0], factor * x[1]];
  const mul = (x, y) => [x[0] * y[0], x[0] * y[1] + x[1] * y[0]];
  const div = (x, y) => [x[0] / y[0], (x[1] - (x[0] / y[0]) * y[1]) / y[0]];

  // -- Gaussian averages ----------------------------------------------------------------------------------

  /* The trapezoid rule: tanh and sigmoid have poles at |Im z| = pi/slope, so that a Gauss-Hermite rule would
     need a number of nodes that grows like slope**2. This step is good to 1e-16. */
  const rules = new Map();

  function gaussianRule(centre, slope, coarseness) {
    // A unit far on one side answers from where its log-odds cross zero, or from 2 slope: reach that far.
    const extension = Math.min(2 * slope, Math.abs(centre) / (slope + 1e-300));
    const left = Math.ceil(9 + (centre > 0 ? extension : 0));
    const right = Math.ceil(9 + (centre < 0 ? extension : 0));
    const step = coarseness * Math.min(0.45, 0.4 / (slope + 1e-300));
    const n = 2 * Math.ceil((left + right) / step / 2);
    const key = `${left} ${right} ${n}`;
    let rule = rules.get(key);
    if (!rule) {
      const nodes = new Float64Array(n + 1);
      const weights = new Float64Array(n + 1);
      const width = (left + right) / n;
      for (let i = 0; i <= n; i++) {
        nodes[i] = i * width - left;
        weights[i] = (width * Math.exp(-0.5 * nodes[i] * nodes[i])) / Math.sqrt(2 * Math.PI);
      }
      if (rules.size > 300) rules.clear();
      rules.set(key, (rule = { nodes, weights }));
    }
    return rule;
  }

  // -- One layer in its random field ----------------------------------------------------------------------

  const SMALL_BIAS = 5e-6; // of a symmetric unit: below, averages odd in the bias are bias times slope
  const STEEP = 1; // sqrt(qhat) from which E[k2**2 + k1 k3] is taken as E[z k1 k2]/sqrt(qhat)

  /* The averages of one layer in the field bias + z sqrt(qhat), with curvature (selfhat - qhat)/2, where qhat
     and selfhat are numbers with derivatives. k1 to k5 are the unit's cumulants; `coarseness` above 1 trades
     accuracy for speed. */
  function layerAverages(unit, bias, [qhat, qhatMotion], [selfhat, selfhatMotion], coarseness) {
    if (unit.states) return stateAverages(unit, [qhat, qhatMotion], [selfhat, selfhatMotion], coarseness);
    const width = unit.high - unit.low;
    const sum = unit.low + unit.high;
    const root = Math.sqrt(qhat);
    const rootMotion = root > 0 ? (0.5 * qhatMotion) / root : 0;
    const drift = 0.5 * sum * (selfhatMotion - qhatMotion);
    const centre = width * (bias + 0.5 * sum * (selfhat - qhat));
    const { nodes, weights } = gaussianRule(centre, width * root, coarseness);
    let mean = 0, meanMotion = 0, overlap = 0, overlapMotion = 0, product = 0, productMotion = 0;
    let slope = 0, slopeMotion = 0, byParts = 0, byPartsMotion = 0;
    let mixed = 0, mixedMotion = 0, mixedSlope = 0, mixedSlopeMotion = 0, cross = 0, crossMotion = 0;
    let squared = 0;
    for (let i = 0; i < nodes.length; i++) {
      const z = nodes[i], w = weights[i];
      const odds = centre + width * root * z;
      const size = Math.abs(odds);
      const decay = Math.exp(-size);
      const likely = 1 / (1 + decay);
      const unlikely = decay * likely;
      let k1;
      if (!unit.symmetric) k1 = odds > 0 ? likely : unlikely;
      else {
        // full relative accuracy near zero, where 1 - decay would cancel
        const t = (size < 1 ? -Math.expm1(-size) : 1 - decay) * likely;
        k1 = odds > 0 ? t : -t;
      }
      const k2 = width * width * likely * unlikely;
      const tilt = sum - 2 * k1;
      const k3 = k2 * tilt;
      const k4 = k3 * tilt - 2 * k2 * k2;
      const k5 = k4 * tilt - 6 * k2 * k3;
      const k12 = k1 * k2;
      const r = k2 * k2 + k1 * k3;
      const rSlope = 3 * k2 * k3 + k1 * k4;
      const s = k3 + 2 * k12;
      const t = k4 + 2 * r;
      const motion = w * (z * rootMotion + drift); // of the field, times the weight
      mean += w * k1;
      meanMotion += motion * k2;
      overlap += w * k1 * k1;
      overlapMotion += motion * 2 * k12;
      product += w * k12;
      productMotion += motion * r;
      slope += w * r;
      slopeMotion += motion * rSlope;
      byParts += w * z * k12;
      byPartsMotion += motion * z * r;
      mixed += w * s;
      mixedMotion += motion * t;
      mixedSlope += w * t;
      mixedSlopeMotion += motion * (k5 + 2 * rSlope);
      cross += w * k1 * s;
      crossMotion += motion * (k2 * s + k1 * t);
      squared += w * k2 * k2;
    }
    // E[k2**2 + k1 k3], the derivative of E[k1 k2] in the bias: its terms cancel where qhat is large, and
    // the same by partial integration does not.
    const productSlope =
      root > STEEP ? div([byParts, byPartsMotion], [root, rootMotion]) : [slope, slopeMotion];
    const zero = [0, 0];
    const spin = unit.symmetric;
    const x = spin ? zero : [cross, crossMotion];
    const y = spin ? zero : [mixedSlope, mixedSlopeMotion];
    const covariance =
      spin && Math.abs(bias) < SMALL_BIAS ? scale(bias, productSlope) : [product, productMotion];
    return {
      qhat: [qhat, qhatMotion],
      selfhat: [selfhat, selfhatMotion],
      overlap: [overlap, overlapMotion],
      selfOverlap: spin ? [1, 0] : [mean, meanMotion],
      squaredVariance: squared,
      // d(overlap, self-overlap)/d(qhat, selfhat), rows first
      jacobian: [[sub(productSlope, x), x], [scale(-1, x), add(scale(0.5, y), x)]],
      // d(overlap, self-overlap)/d bias; and, where symmetry makes that vanish, its derivative in the bias
      toBias: [scale(2, covariance), spin ? zero : [mixed, mixedMotion]],
      toBiasSlope: [scale(2, productSlope), y],
    };
  }

  /* A layer of categorical units: the self-overlap is fixed, and the derivative of the overlap takes the place of
     derivatives in a bias. */
  function stateAverages(unit, qhat, selfhat, coarseness) {
    const { overlap, slope, bend, squared } = Units.averageStates(unit.states, qhat[0], coarseness);
    const zero = [0, 0], answer = [slope, bend * qhat[1]];
    return {
      qhat, selfhat,
      overlap: [overlap, slope * qhat[1]],
      selfOverlap: [unit.square, 0],
      squaredVariance: squared,
      jacobian: [[answer, zero], [zero, zero]],
      toBias: [zero, zero],
      toBiasSlope: [scale(2, answer), zero],
    };
  }

  const still = (x) => [x, 0];

  // -- The saddle point -----------------------------------------------------------------------------------

  /* What the layers' order parameters count in each other. */
  function couplings(machine, beta) {
    const toHidden = (beta * beta) / (1 + machine.alpha);
    return { toVisible: machine.alpha * toHidden, toHidden };
  }

  /* From the visible layer's order parameters to the hidden layer and back. */
  function goAround(machine, { toVisible, toHidden }, q, selfOverlap) {
    const answer = (unit, bias, coupling, q, selfOverlap) =>
      layerAverages(unit, bias, still(coupling * q), still(coupling * selfOverlap), machine.coarseness);
    const hidden = answer(machine.hidden, machine.c, toHidden, q, selfOverlap);
    const visible = answer(machine.visible, machine.b, toVisible, hidden.overlap[0], hidden.selfOverlap[0]);
    return { visible, hidden };
  }

  const isSymmetric = (unit, bias) => unit.symmetric && bias === 0;

  /* q_v of a spin layer: the root of phi = ln(F(q)/q), where F goes once around, by Newton's method in ln q
     inside a shrinking bracket. Successive substitution would crawl near the transition and cycle for
     strongly negative biases. */
  function solveOverlap(machine, beta, guess) {
    const coupling = couplings(machine, beta);
    const gain = coupling.toVisible * coupling.toHidden;
    const linear = isSymmetric(machine.visible, machine.b) && isSymmetric(machine.hidden, machine.c);
    if (linear && gain <= 1 + 1e-15) return { q: 0, selfOverlap: 1, coupling, converged: true };
    let q = guess;
    const full = machine.visible.square;
    if (q === undefined) {
      q = linear ? goAround(machine, coupling, full, full).visible.overlap[0] : roughOverlap(machine, coupling);
    }
    let low = 1e-300, high = full, converged = false;
    q = Math.min(Math.max(q, low), high);
    for (let i = 0; i < 200; i++) {
      const { visible, hidden } = goAround(machine, coupling, q, full);
      const value = Math.max(visible.overlap[0], 1e-300);
      const phi = Math.log(value / q);
      const rate = (gain * visible.jacobian[0][0][0] * hidden.jacobian[0][0][0] * q) / value - 1;
      if (phi > 0) low = q;
      if (phi < 0) high = q;
      const step = rate < 0 ? -phi / rate : NaN;
      // where zero is a solution too, phi is a straight line in q rather than in ln q
      const newton = linear ? q * (1 + step) : q * Math.exp(Math.min(step, 100));
      const inside = newton >= low && newton <= high;
      q = inside ? newton : Math.sqrt(Math.max(low, 1e-6 * high) * high);
      converged = Math.abs(phi) <= 1e-8; // the step just taken squares that
      if (converged || high - low <= 2e-16 * high) break;
    }
    return { q, selfOverlap: full, coupling, converged };
  }

  /* A first guess at q_v: the hidden units at the mean of their field. */
  function roughOverlap(machine, coupling) {
    const mean = machine.hidden.symmetric
      ? Math.tanh(machine.c)
      : 1 / (1 + Math.exp(-machine.c - 0.5 * coupling.toHidden));
    const field = coupling.toVisible * mean * mean + machine.b * machine.b;
    return (machine.visible.square * field) / (1 + field) + 1e-290;
  }

  /* Two bit layers: overlap and self-overlap at once, by damped Newton steps in their logarithms. */
  function solvePair(machine, beta, [q, selfOverlap]) {
    const coupling = couplings(machine, beta);
    const gain = coupling.toVisible * coupling.toHidden;
    const evaluate = (q, s) => {
      const { visible, hidden } = goAround(machine, coupling, q, s);
      const f = visible.overlap[0], g = visible.selfOverlap[0];
      return { f, g, phi: Math.log(f / q), psi: Math.log(g / s), visible, hidden };
    };
    let now = evaluate(q, selfOverlap);
    let miss = Math.max(Math.abs(now.phi), Math.abs(now.psi));
    for (let i = 0; i < 100 && miss > 1e-14; i++) {
      const loop = matrixProduct(now.visible.jacobian, now.hidden.jacobian);
      const a = (gain * loop[0][0][0] * q) / now.f - 1, b = (gain * loop[0][1][0] * selfOverlap) / now.f;
      const c = (gain * loop[1][0][0] * q) / now.g, d = (gain * loop[1][1][0] * selfOverlap) / now.g - 1;
      const determinant = a * d - b * c;
      const stepQ = (b * now.psi - d * now.phi) / determinant;
      const stepS = (c * now.phi - a * now.psi) / determinant;
      let length = Math.min(1, 1 / Math.max(Math.abs(stepQ), Math.abs(stepS), 1e-300));
      let next, nextMiss, nextQ, nextS;
      for (let k = 0; k < 30; k++, length /= 2) {
        nextQ = q * Math.exp(length * stepQ);
        nextS = selfOverlap * Math.exp(length * stepS);
        next = evaluate(nextQ, nextS);
        nextMiss = Math.max(Math.abs(next.phi), Math.abs(next.psi));
        if (nextMiss <= Math.max(miss, 1e-15)) break;
      }
      const finished = !(nextMiss < 0.5 * miss) && nextMiss < 1e-12; // no more to gain than rounding
      [q, selfOverlap, now, miss] = [nextQ, nextS, next, nextMiss];
      if (finished || Number.isNaN(miss)) break;
    }
    return { q, selfOverlap, coupling, converged: miss < 1e-11 };
  }

  function solve(machine, beta, near) {
    if (machine.visible.symmetric) return solveOverlap(machine, beta, near && near.q);
    let point = solvePair(machine, beta, near ? [near.q, near.selfOverlap] : [0.25, 0.5]);
    if (point.converged) return point;
    // along a path from small beta, where there is one solution
    point = { q: 0.25, selfOverlap: 0.5 };
    for (let i = 0; i <= 60; i++) {
      point = solvePair(machine, beta * 10 ** (-3 + i / 20), [point.q, point.selfOverlap]);
    }
    return point;
  }

  // -- The layer correlation and how it moves with beta ---------------------------------------------------

  const matrixProduct = ([[a, b], [c, d]], [[e, f], [g, h]]) => [
    [add(mul(a, e), mul(b, g)), add(mul(a, f), mul(b, h))],
    [add(mul(c, e), mul(d, g)), add(mul(c, f), mul(d, h))],
  ];
  const apply = ([[a, b], [c, d]], [x, y]) => [add(mul(a, x), mul(b, y)), add(mul(c, x), mul(d, y))];

  /* (I - gain J_left J_right)**-1 source */
  function solveLoop(gain, left, right, [x, y]) {
    const loop = matrixProduct(left, right);
    const one = still(1);
    const a = sub(one, mul(gain, loop[0][0])), b = scale(-1, mul(gain, loop[0][1]));
    const c = scale(-1, mul(gain, loop[1][0])), d = sub(one, mul(gain, loop[1][1]));
    const determinant = sub(mul(a, d), mul(b, c));
    return [
      div(sub(mul(d, x), mul(b, y)), determinant),
      div(sub(mul(a, y), mul(c, x)), determinant),
    ];
  }

  /* The layer correlation at beta (its slope in the biases that symmetry sets to zero), its logarithmic
     derivative in ln beta, and the de Almeida-Thouless number, positive where replica symmetry holds. */
  function measure(machine, beta, near) {
    const point = solve(machine, beta, near);
    const { toVisible, toHidden } = point.coupling;
    const { visible, hidden } = goAround(machine, point.coupling, point.q, point.selfOverlap);
    // The saddle point moves with beta: per relative change of beta the couplings change by twice themselves.
    const push = (layer, coupling, answer) => [
      still(2 * layer.qhat[0] + coupling * answer[0][0]),
      still(2 * layer.selfhat[0] + coupling * answer[1][0]),
    ];
    const nothing = [still(0), still(0)];
    const forcedVisible = apply(visible.jacobian, push(visible, 0, nothing));
    const forcedHidden = apply(hidden.jacobian, push(hidden, toHidden, forcedVisible));
    const moveHidden = solveLoop(still(toVisible * toHidden), hidden.jacobian, visible.jacobian, forcedHidden);
    const pushVisible = push(visible, toVisible, moveHidden);
    const moveVisible = apply(visible.jacobian, pushVisible);
    const pushHidden = push(hidden, toHidden, moveVisible);
    const moving = (unit, bias, layer, motion) =>
      layerAverages(
        unit, bias, [layer.qhat[0], motion[0][0]], [layer.selfhat[0], motion[1][0]], machine.coarseness,
      );
    const v = moving(machine.visible, machine.b, visible, pushVisible);
    const h = moving(machine.hidden, machine.c, hidden, pushHidden);
    const gain = [toVisible * toHidden, 4 * toVisible * toHidden];
    const source = isSymmetric(machine.hidden, machine.c) ? h.toBiasSlope : h.toBias;
    const change = solveLoop(gain, h.jacobian, v.jacobian, source);
    const target = isSymmetric(machine.visible, machine.b) ? v.toBiasSlope : v.toBias;
    const sum = sub(mul(target[1], change[1]), mul(target[0], change[0]));
    const value = scale(0.5 / (1 + machine.alpha), mul([toVisible, 2 * toVisible], sum));
    return {
      beta,
      q: point.q,
      selfOverlap: point.selfOverlap,
      converged: point.converged,
      value: value[0],
      rate: value[1] / value[0],
      stability: 1 - toVisible * toHidden * visible.squaredVariance * hidden.squaredVariance,
    };
  }

  const height = (point) => Math.log(Math.max(Math.abs(point.value), 1e-320));

  // -- The maximum ----------------------------------------------------------------------------------------

  /* The explicit formula, good to 1e-6 for spin-bit machines: it starts the search where it holds. */
  function formula(alpha, c) {
    if (!(alpha >= 0.05 && alpha <= 20 && c >= -10 && c <= 2)) return NaN;
    const stretch = (t, centre, width, first, last) => {
      const low = Math.asinh((first - centre) / width), high = Math.asinh((last - centre) / width);
      return Math.max(-1, Math.min(1, (2 * (Math.asinh((t - centre) / width) - low)) / (high - low) - 1));
    };
    const x = Math.log(alpha);
    const theta = Math.acos(stretch(x, 1, 4.7, Math.log(0.05), Math.log(20)));
    const phi = Math.acos(stretch(c, 0.3 - 0.5 * x, 1.5, -10, 2));
    let sum = 0;
    NANO.forEach((row, i) => row.forEach((a, j) => { sum += a * Math.cos(i * theta) * Math.cos(j * phi); }));
    return 1e-9 * sum;
  }

  /* The first local maximum on a grid from `start` to `stop`, between its neighbours; null if there is none. */
  function firstPeak(machine, start, stop, ratio, near) {
    const rough = { ...machine, coarseness: 1.7 }; // enough to tell up from down
    const points = [];
    for (let beta = start; beta < stop * ratio * ratio; beta *= ratio) {
      const last = points[points.length - 1] || near;
      points.push(measure(rough, beta, machine.visible.symmetric ? undefined : last));
      if (points.length < 5) continue;
      const [, left, middle, right] = points.slice(-5);
      if (height(middle) >= height(left) && height(middle) > height(right)) {
        return { low: left, middle, high: right };
      }
    }
    return null;
  }

  /* The root of d ln|chi|/d ln beta between two points, by Ridders' method; comparing values of chi instead
     would stop at 1e-8. Null where the derivative has the same sign at both. */
  function refine(machine, low, high) {
    if (!(low.rate > 0 && high.rate < 0)) return null;
    let a = low, b = high, x = Math.log(low.beta), y = Math.log(high.beta), best = null, previous = NaN;
    const narrow = (point, at) => {
      if (point.rate > 0) [a, x] = [point, at];
      else [b, y] = [point, at];
    };
    for (let i = 0; i < 80 && y - x > 1e-13; i++) {
      const left = a, right = b, from = x, middle = 0.5 * (x + y);
      const centre = measure(machine, Math.exp(middle), left);
      narrow(centre, middle);
      const root = Math.sqrt(centre.rate * centre.rate - left.rate * right.rate);
      const at = middle + ((middle - from) * centre.rate) / root;
      best = measure(machine, Math.exp(at), centre);
      narrow(best, at);
      if (best.rate === 0 || Math.abs(at - previous) < 1e-14) break;
      previous = at;
    }
    return best;
  }

  const RANGES = {
    ordinary: { first: 0.6, ratio: 1.16, last: 2000, rivals: 0 },
    fine: { first: 0.3, ratio: 1.05, last: 2000, rivals: 300 }, // there may be several maxima
    bits: { first: 0.05, ratio: 1.12, last: 100, rivals: 30 },
  };
  const FLAT = 0.7; // curvature of ln|chi| in ln beta below which a maximum is called flat
  const LARGE_BIAS = 3; // hidden bias up to which spin-bit machines have no rival maximum
  const TINY_BIAS = 1e-150; // too small for floats
  const TINY_SPIN_BIAS = 1e-7; // shifts the maximum of two spin layers by less than 1e-10 from the transition

  /* A machine with the layer that has a fixed self-overlap, if there is one, first: exchanging the layers
     changes no correlation between them. */
  function makeMachine(visible, hidden, alpha, c) {
    const closed = Units.closedForm(visible, hidden, alpha, c);
    if (closed) return { closed };
    const tiny = visible === "spin" && hidden === "spin" ? TINY_SPIN_BIAS : TINY_BIAS;
    const bias = Math.abs(c) < tiny ? 0 : c;
    if (hidden === "spin" && visible === "bit") {
      return { visible: unitOf("spin"), hidden: unitOf(visible), alpha: 1 / alpha, b: bias, c: 0, coarseness: 1 };
    }
    return { visible: unitOf(visible), hidden: unitOf(hidden), alpha, b: 0, c: bias, coarseness: 1 };
  }

  /* The maximum of smallest beta: beta, status, and what else is known of it. */
  function findMaximum(machine) {
    if (machine.closed) return machine.closed;
    const evenVisible = isSymmetric(machine.visible, machine.b);
    if (evenVisible && isSymmetric(machine.hidden, machine.c)) {
      const root = Math.sqrt(machine.alpha);
      return { beta: Math.sqrt(root + 1 / root), status: "transition", value: -Infinity, stability: 0 };
    }
    const ordinary = evenVisible && !machine.hidden.symmetric && machine.c <= LARGE_BIAS;
    const range = ordinary ? RANGES.ordinary : machine.visible.symmetric ? RANGES.fine : RANGES.bits;
    let found = null, peak = null;
    const guess = ordinary && !machine.visible.states ? formula(machine.alpha, machine.c) : NaN;
    if (guess > 0) {
      found = refine(machine, measure(machine, guess * (1 - 2e-6)), measure(machine, guess * (1 + 2e-6)));
    }
    if (!found) {
      peak = firstPeak(machine, range.first, range.last, range.ratio);
      if (!peak) return { beta: NaN, status: "none" };
      found = refine(machine, peak.low, peak.high);
    }
    if (!found || !isSmooth(machine, found)) {
      const { beta, stability } = found || peak.middle;
      return { beta, stability, status: "jump" };
    }
    const { beta, value, stability } = found;
    const result = { beta, value, stability, status: "maximum" };
    const d = 1e-4;
    const rate = (sign) => measure(machine, beta * Math.exp(sign * d), found).rate;
    result.curvature = (rate(1) - rate(-1)) / (2 * d);
    if (result.curvature > -FLAT) result.status = "flat";
    if (range.rivals) {
      result.rival = higherMaximum(machine, peak, range);
      if (result.rival) result.status = "rival";
    }
    if (stability < 0) result.status = "unstable";
    return result;
  }

  /* Whether the derivative passes through zero at a point, rather than jumping past it. Near the transition it
     is so steep that rounding leaves it far from zero; then it must be larger still a little further out. */
  function isSmooth(machine, { beta, rate }) {
    const size = Math.abs(rate);
    if (size < 1e-4) return true;
    return [-1e-11, 1e-11].every((d) => size < 0.1 * Math.abs(measure(machine, beta * (1 + d)).rate));
  }

  /* The beta of a higher maximum further on, or undefined. */
  function higherMaximum(machine, peak, range) {
    const stop = Math.max(2 * peak.high.beta, range.rivals);
    for (let near = peak.high; near.beta < stop; ) {
      const next = firstPeak(machine, near.beta, stop, range.ratio, near);
      if (!next) return undefined;
      if (height(next.middle) > height(peak.middle)) return next.middle.beta;
      near = next.high;
    }
    return undefined;
  }

  return { makeMachine, findMaximum, measure, formula };
})();
