"""A machine in plain PyTorch, started at the theory's scale by one line; nothing else of it is ours.

Needs PyTorch: pip install ".[torch]" in a checkout
"""

from __future__ import annotations

import torch
from torch.nn.functional import linear, softplus

import paramagnet as pm
from paramagnet.adapters.pytorch import from_tensors, layer_correlation_normal_


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the tensors are small
    data = torch.tensor(pm.load_dataset("toy", rng=0).data, dtype=torch.float32)
    weight = torch.empty(30, 20)
    layer_correlation_normal_(weight, hidden_bias=-2.0)  # the one line
    hidden_bias = torch.full((30,), -2.0)
    visible_bias = torch.zeros(20)
    print(f"sigma: drawn {weight.std():.4f}, theory {pm.weight_std(20, 30, hidden_bias=-2.0):.4f}")

    parameters = [tensor.requires_grad_() for tensor in (weight, visible_bias, hidden_bias)]
    optimizer = torch.optim.Adam(parameters, lr=0.005)
    chains = data.clone()

    def free_energy(v: torch.Tensor) -> torch.Tensor:
        return -(v @ visible_bias) - softplus(linear(v, weight, hidden_bias)).sum(1)

    for update in range(201):
        if update % 50 == 0:
            rbm = from_tensors(weight=weight, visible_bias=visible_bias, hidden_bias=hidden_bias)
            print(f"update {update:3d}: {float(pm.log_likelihood(rbm, data)):.3f} nats per point, exact")
        with torch.no_grad():
            for _ in range(10):
                hidden = torch.bernoulli(torch.sigmoid(linear(chains, weight, hidden_bias)))
                chains = 2.0 * torch.bernoulli(torch.sigmoid(2.0 * (hidden @ weight + visible_bias))) - 1.0
        optimizer.zero_grad()
        (free_energy(data).mean() - free_energy(chains).mean()).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
