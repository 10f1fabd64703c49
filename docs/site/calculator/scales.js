"use strict";

/* The scales that people use otherwise: usual schemes, read with the visible layer as the input, and the
   defaults of other packages, with their unit types where those are fixed. Copies of the tables in
   src/paramagnet/initializers.py, which tests/theory/test_calculator.py keeps equal. */
const SCALES = [
  { name: "Xavier", scale: (n, m) => Math.sqrt(2 / (n + m)) },
  { name: "He", scale: (n) => Math.sqrt(2 / n) },
  { name: "LeCun", scale: (n) => Math.sqrt(1 / n) },
  { name: "Hinton", scale: () => 0.01 },
  { name: "rbms 0.5", units: "bit-bit", scale: () => 1e-4 },
  { name: "scikit-learn", units: "bit-bit", scale: () => 0.01 },
  { name: "learnergy", units: "bit-bit", scale: () => 0.01 },
  { name: "RestrictedBoltzmannMachines.jl", scale: (n) => 0.1 / Math.sqrt(n) },
  { name: "PGM", scale: (n) => Math.sqrt(0.1 / n) },
  { name: "QuCumber", units: "bit-bit", scale: (n) => 1 / Math.sqrt(n) },
  { name: "PyDeep", units: "bit-bit", scale: (n, m) => 4 * Math.sqrt(2 / (n + m)) },
  { name: "D-Wave plugin 0.4", units: "spin-spin", scale: (n, m) => 2.5 * (n * m) ** -0.25 },
];

/* Our maximum in a package's own unit types, at zero bias; kept, as two layers of bits take a while. */
const OWN = new Map();
function ownMachine(units, alpha) {
  const key = `${units} ${alpha}`;
  if (!OWN.has(key)) {
    const machine = Theory.makeMachine(...units.split("-"), alpha, 0);
    if (OWN.size > 50) OWN.clear();
    OWN.set(key, { machine, ...Theory.findMaximum(machine) });
  }
  return OWN.get(key);
}

/* Every scale with its sigma, that over ours, and the layer correlation over its maximum. A package with unit
   types of its own is judged in these, at zero bias, as by `paramagnet schemes`; all else in the given ones. */
function rateScales(n, m, sigma, heightAt) {
  const root = Math.sqrt(n + m);
  return SCALES.map((entry) => {
    const scale = entry.scale(n, m);
    if (!entry.units) return { ...entry, sigma: scale, ratio: scale / sigma, height: heightAt(scale) };
    const own = ownMachine(entry.units, m / n);
    const height = Number.isFinite(own.value)
      ? Math.abs(Theory.measure(own.machine, scale * root).value / own.value)
      : NaN;
    return { ...entry, sigma: scale, ratio: (scale * root) / own.beta, height, phased: own.status === "transition" };
  });
}

/* The scales in ascending order of their ratio to ours, equal ones together, each group with a letter. */
function groupScales(rated) {
  const sorted = [...rated].sort((x, y) => x.ratio - y.ratio);
  const groups = [];
  for (const entry of sorted) {
    const last = groups[groups.length - 1];
    const same = last && entry.sigma === last.sigma && (entry.units || "") === (last.units || "");
    if (same) last.members.push(entry);
    else groups.push({ ...entry, letter: "ABCDEFGHIJKL"[groups.length], members: [entry] });
  }
  return groups;
}
