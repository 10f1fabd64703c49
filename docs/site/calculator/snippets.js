"use strict";

/* Lines of Python to copy, for a machine and its sigma. */
const SNIPPETS = (() => {
  const float = (x) => (Number.isInteger(x) ? `${x}.0` : `${x}`);
  const rows = ({ n, visible }) => n * (Units.stateCount(visible) || 1);
  const biases = ({ n, m, c, visible }, library) =>
    `visible_bias = ${library}.zeros(${rows({ n, visible })})\n` +
    (c === 0 ? `hidden_bias = ${library}.zeros(${m})` : `hidden_bias = ${library}.full((${m},), ${float(c)})`);

  /* Labels: the mean over the states of a site is dropped; left in, it would be a random bias of every hidden unit. */
  function gauge({ n, m, visible }, mean) {
    const q = Units.stateCount(visible);
    if (!q) return "";
    return `
by_state = weights.reshape(${n}, ${q}, ${m})  # row i * ${q} + a: state a of site i
weights = (by_state - ${mean}).reshape(${n * q}, ${m})  # zero-sum gauge`;
  }

  function forPackage({ n, m, c, visible, hidden }) {
    return `import paramagnet as pm

rbm = pm.initialize(
    ${n}, ${m},
    visible="${visible}", hidden="${hidden}",
    hidden_bias=${float(c)}, rng=0,
)`;
  }

  const forNumpy = (inputs, sigma) => `import numpy as np

rng = np.random.default_rng(0)
weights = rng.normal(0.0, ${sigma}, size=(${rows(inputs)}, ${inputs.m}))${gauge(inputs, "by_state.mean(axis=1, keepdims=True)")}
${biases(inputs, "np")}`;

  const forTorch = (inputs, sigma) => `import torch

weights = torch.empty(${rows(inputs)}, ${inputs.m})
torch.nn.init.normal_(weights, std=${sigma})${gauge(inputs, "by_state.mean(dim=1, keepdim=True)")}
${biases(inputs, "torch")}`;

  const forJax = (inputs, sigma) => `import jax
import jax.numpy as jnp

key = jax.random.key(0)
weights = ${sigma} * jax.random.normal(key, (${rows(inputs)}, ${inputs.m}))${gauge(inputs, "by_state.mean(axis=1, keepdims=True)")}
${biases(inputs, "jnp")}`;

  /* BernoulliRBM has bits in both layers. With v = 2x - 1 for spins v and bits x the same machine has the
     weights a A w, where a and A are 2 for layers of spins and 1 for layers of bits. */
  function forScikit(inputs, sigma) {
    const { n, m, c, visible, hidden } = inputs;
    if (![visible, hidden].every((name) => name === "spin" || name === "bit")) {
      return `# BernoulliRBM has bits in both layers: there is no ${visible}-${hidden} machine in scikit-learn.`;
    }
    const spinV = visible === "spin", spinH = hidden === "spin";
    const factor = (spinV ? 2 : 1) * (spinH ? 2 : 1);
    let hiddenBias = `np.full(${m}, ${float(spinH ? 2 * c : c)})`;
    if (spinV) hiddenBias = spinH ? `2.0 * (${float(c)} - w.sum(axis=0))` : `${float(c)} - w.sum(axis=0)`;
    const visibleBias = spinH ? `-${spinV ? "2.0 * " : ""}w.sum(axis=1)` : `np.zeros(${n})`;
    const note =
      factor === 1 ? "" : `# the ${visible}-${hidden} machine in bits, BernoulliRBM's units\n`;
    return `import numpy as np
from sklearn.neural_network import BernoulliRBM

rng = np.random.default_rng(0)
w = rng.normal(0.0, ${sigma}, size=(${n}, ${m}))
rbm = BernoulliRBM(n_components=${m}, random_state=0)
${note}rbm.components_ = ${factor === 1 ? "" : `${float(factor)} * `}w.T
rbm.intercept_visible_ = ${visibleBias}
rbm.intercept_hidden_ = ${hiddenBias}
# partial_fit(batch) starts from these; fit would draw its own`;
  }

  return [
    { name: "paramagnet", write: forPackage },
    { name: "NumPy", write: forNumpy },
    { name: "PyTorch", write: forTorch },
    { name: "JAX", write: forJax },
    { name: "scikit-learn", write: forScikit },
  ];
})();
