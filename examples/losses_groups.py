"""Low-visit bias in a loop of groups, as CosPlace trains: one softmax at a time, its own prior.

python examples/losses_groups.py
"""

import torch
import torch.nn.functional as F

from evenplace.losses import LowVisitBias

torch.manual_seed(0)
counts = torch.tensor([150, 90, 40, 30, 12, 8, 5, 3])  # photos of each place
labels = torch.arange(8).repeat_interleave(counts)
photos = torch.randn(8, 16)[labels] + torch.randn(len(labels), 16)
groups = [torch.arange(0, 8, 2), torch.arange(1, 8, 2)]  # places that are not neighbours

network = torch.nn.Linear(16, 8)
heads = [torch.nn.Parameter(torch.randn(len(places), 8)) for places in groups]
optimisers = [torch.optim.Adam([*network.parameters(), head], lr=1e-2) for head in heads]
# Pass all_counts=counts as well to take the prior over the whole map.
criteria = [LowVisitBias(counts[places], beta=0.25, kappa=0.5, margin=0.1) for places in groups]

losses: list[list[float]] = [[], []]
for epoch in range(12):
    group = epoch % len(groups)
    rows = torch.isin(labels, groups[group]).nonzero()[:, 0]
    for batch in rows[torch.randperm(len(rows))].split(32):
        local = torch.searchsorted(groups[group], labels[batch])  # place -> column of this head
        cosines = F.normalize(network(photos[batch])) @ F.normalize(heads[group]).T
        value = criteria[group](cosines, local)
        optimisers[group].zero_grad()
        value.backward()
        optimisers[group].step()
        losses[group].append(value.item())
first, last = (sum(group[where] for group in losses) / 2 for where in (0, -1))
print(f"loss {first:.2f} -> {last:.2f}")
