"""Low-visit bias in a Lightning module.

pip install lightning && python examples/losses_lightning.py
"""

import lightning
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from evenplace.losses import LowVisitBias


class Places(lightning.LightningModule):
    def __init__(self, counts: torch.Tensor) -> None:
        super().__init__()
        self.network = torch.nn.Linear(16, 8)
        self.prototypes = torch.nn.Parameter(torch.randn(len(counts), 8))
        self.loss = LowVisitBias(counts, beta=0.25, kappa=0.5, margin=0.1)  # moves with the module

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        photos, labels = batch
        cosines = F.normalize(self.network(photos)) @ F.normalize(self.prototypes).T
        return self.loss(cosines, labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-2)


torch.manual_seed(0)
counts = torch.tensor([200, 60, 20, 6, 2])
labels = torch.arange(5).repeat_interleave(counts)
photos = torch.randn(5, 16)[labels] + torch.randn(len(labels), 16)
data = DataLoader(TensorDataset(photos, labels), batch_size=32, shuffle=True)
model = Places(counts)
first = model.training_step([photos, labels]).item()
quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar"), False)
lightning.Trainer(max_epochs=10, accelerator="cpu", **quiet).fit(model, data)
print(f"loss {first:.2f} -> {model.training_step([photos, labels]).item():.2f}")
