"""Low-visit bias in a plain PyTorch loop: replace one line, keep the trainer.

python examples/losses_plain.py
"""

import torch
import torch.nn.functional as F

from evenplace.losses import LowVisitBias

torch.manual_seed(0)
counts = torch.tensor([200, 60, 20, 6, 2])  # photos of each place
labels = torch.arange(5).repeat_interleave(counts)
photos = torch.randn(5, 16)[labels] + torch.randn(len(labels), 16)

network = torch.nn.Linear(16, 8)
prototypes = torch.nn.Parameter(torch.randn(5, 8))
optimiser = torch.optim.Adam([*network.parameters(), prototypes], lr=1e-2)
loss = LowVisitBias(counts, beta=0.25, kappa=0.5, scale=30.0, margin=0.1)  # was: cross_entropy
print(loss.describe())

losses = []
for _ in range(10):
    for rows in torch.randperm(len(labels)).split(32):
        cosines = F.normalize(network(photos[rows])) @ F.normalize(prototypes).T
        value = loss(cosines, labels[rows])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        losses.append(value.item())
print(f"loss {sum(losses[:9]) / 9:.2f} -> {sum(losses[-9:]) / 9:.2f}")
