"""Low-visit bias in place of pytorch-metric-learning's MultiSimilarityLoss, with its miner.

python examples/losses_metric_learning.py
"""

import torch
from pytorch_metric_learning.miners import MultiSimilarityMiner

from evenplace.losses import LowVisitBiasPairs

torch.manual_seed(0)
counts = torch.randint(4, 21, (60,))  # photos of each place
labels = torch.arange(60).repeat_interleave(counts)
photos = torch.randn(60, 16)[labels] + 0.5 * torch.randn(len(labels), 16)

network = torch.nn.Linear(16, 8)
optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
miner = MultiSimilarityMiner(epsilon=0.1)
loss = LowVisitBiasPairs(counts, kappa=0.01)  # was: MultiSimilarityLoss(alpha=1, beta=50, base=0)
print(loss.describe())

losses = []
for _ in range(20):
    loss.update_counts(counts)  # once an epoch, as the paper does: photos may have come or gone
    for places in torch.randperm(60).split(15):  # 15 places x 4 photos
        rows = torch.cat(
            [(labels == p).nonzero()[:, 0][torch.randperm(counts[p])[:4]] for p in places]
        )
        descriptors = network(photos[rows])
        value = loss(descriptors, labels[rows], miner(descriptors, labels[rows]))
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        losses.append(value.item())
print(f"loss {sum(losses[:4]) / 4:.2f} -> {sum(losses[-4:]) / 4:.2f}")
