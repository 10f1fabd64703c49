"use strict";

/* How far a result is to be trusted, in words. */
const NO_MAXIMUM = {
  none: "The layer correlation of this machine has no maximum that was found.",
  jump: "The layer correlation of this machine jumps (a first-order transition) and has no smooth maximum.",
};
const REMEDY = "Choose a bias nearer to zero, or layers of more equal size.";

function explainNoMaximum(status, { n, m, c, visible, hidden }) {
  if (status === "unbounded") {
    return "Two layers of unbounded units have no maximum of the layer correlation. Give one of them spin or bit units.";
  }
  if (status === "package") {
    return (
      "This page has Gaussian units beside spins or categorical units without hidden bias only. The package has all: " +
      `paramagnet beta-max --visible-units ${n} --hidden-units ${m} --visible "${visible}" --hidden "${hidden}" ` +
      `--hidden-bias ${c}`
    );
  }
  return `${NO_MAXIMUM[status]} ${REMEDY}`;
}

const UNIT_NOTES = {
  way:
    "Data of 0 and 1 can be written as −1 and +1: choose spin visible units here; the code for scikit-learn, and " +
    'to_bits("visible") in paramagnet, turn that machine into bits exactly.',
  bothBits:
    "No trustworthy criterion for bits in both layers: the correlation depends on which value is called 1, may " +
    "change its sign, and its first maximum jumps as the bias moves.",
  biasedSpins:
    "No trustworthy criterion for bit visible units and biased spin hidden units: no symmetry is left, and the " +
    "correlation depends on which value is called 1.",
  exchanged:
    "Bit visible and spin hidden units are the paper’s machine with its layers exchanged: the same theory, but not " +
    "tested by learning.",
  spins:
    "The paper treats spin hidden units without bias only. With a bias the same criterion applies, but it has not " +
    "been tested by learning.",
  transition:
    "Spins in both layers and no bias: the maximum is the spin-glass transition, in closed form, σ = (nm)^(−1/4).",
};

/* [{kind: "warning" or "remark", text}] */
function judgeResult({ n, m, c, visible, hidden }, { beta, status, rival }) {
  const notes = [];
  const warn = (text) => notes.push({ kind: "warning", text });
  const remark = (text) => notes.push({ kind: "remark", text });
  if (status === "flat") warn(`The maximum is flat: scales around β = ${beta.toPrecision(4)} are hardly worse.`);
  if (status === "rival") {
    warn(`The correlation has a higher maximum at β = ${rival.toPrecision(4)}; the first one is taken.`);
  }
  if (status === "unstable") {
    warn(`Replica symmetry is broken at the maximum: the theory is not to be trusted there. ${REMEDY}`);
  }
  if (status === "edge (continuous)") {
    remark(
      "No maximum: σ is the stability edge, where the disordered state of the centred machine ends" +
        (Units.stateCount(visible) > 4 ? "; for more than four states the transition may come before it." : ".") +
        ' In paramagnet scheme="centred" makes such a start from data.',
    );
  }
  if (status === "edge (condensation)") {
    warn("No maximum: at this σ single ReLU units grow without bound along their own weights. Stay below it.");
  }
  if (visible === "bit" && hidden !== "relu") {
    if (hidden === "bit") warn(`${UNIT_NOTES.bothBits} ${UNIT_NOTES.way}`);
    else if (c !== 0) warn(`${UNIT_NOTES.biasedSpins} ${UNIT_NOTES.way}`);
    else remark(`${UNIT_NOTES.exchanged} ${UNIT_NOTES.way}`);
  } else if (visible === "spin" && hidden === "spin") {
    remark(status === "transition" ? UNIT_NOTES.transition : UNIT_NOTES.spins);
  } else if (status === "transition") {
    remark("Gaussian units and no bias: σ is the spin-glass transition, in closed form, where the correlation diverges.");
  }
  if (Math.min(n, m) < 20 && !(status in NO_MAXIMUM)) {
    remark(
      "The theory is for large layers. At 12 + 12 units (spin, bit) the true maximum lies 5 % (c = 0) to 12 % " +
        "(c = −5) higher.",
    );
  }
  return notes;
}
