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

/* The scales for two layers in ascending order, equal ones together, each group with a letter. */
function groupScales(n, m) {
  const sorted = SCALES.map((entry) => ({ ...entry, sigma: entry.scale(n, m) }));
  sorted.sort((x, y) => x.sigma - y.sigma);
  const groups = [];
  for (const entry of sorted) {
    const last = groups[groups.length - 1];
    if (last && entry.sigma < last.sigma * (1 + 1e-9)) last.members.push(entry);
    else groups.push({ letter: "ABCDEFGHIJKL"[groups.length], sigma: entry.sigma, members: [entry] });
  }
  return groups;
}
