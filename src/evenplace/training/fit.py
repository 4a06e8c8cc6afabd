"""One fit of a network: epochs of steps, a checkpoint now and then, the best epoch remembered.

Every random draw comes from (seed, epoch), so a run that was stopped and taken up again draws
what an unbroken one would have drawn.

    B batch · D descriptor
"""

import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from evenplace.describe.describer import Progress
from evenplace.describe.torch_engine import carry, loss_scaler, lower_precision, weight_type
from evenplace.errors import PlaceError
from evenplace.losses import loss_takes
from evenplace.networks.checkpoints import read_tensors, save_tensors
from evenplace.networks.network import PlaceNetwork
from evenplace.training.batches import Step
from evenplace.training.objective import Objective, Setup
from evenplace.training.pair_objective import CliqueObjective, PairObjective
from evenplace.training.photo_source import describe_regions
from evenplace.training.progress import RunLog, State, load_progress, save_progress
from evenplace.training.schedule import Average, build_optimiser, rate, set_rates
from evenplace.training.softmax_objective import FocalObjective, LevelObjective, SoftmaxObjective
from evenplace.training.triplet_objective import GenerationObjective, TripletObjective
from evenplace.training.validation import HeldOut, Recall

_BEST = "best.safetensors"
_SHORT = 10.0  # seconds of training that are sooner done again than kept after every epoch


class Session:
    """A setup on its way to a fitted network."""

    def __init__(self, setup: Setup, held: HeldOut | None, show: Progress) -> None:
        self.setup, self.held, self.show = setup, held, show
        self.spec, self.network, self.run = setup.recipe.training, setup.network, setup.run
        self.objective = build_objective(setup)
        self.describer = self._describer()
        self.precision = setup.source.precision
        self.scaler = loss_scaler(setup.device, self.precision)
        named = [(n, p) for n, p in self.network.named_parameters() if p.requires_grad]
        body = {n: p for n, p in named if not n.startswith("classifiers.")}
        self.body = list(body.values())
        heads = {f"head.{i}": p for i, p in enumerate(self.objective.parameters())}
        self.average = Average(body | heads, self.spec.average)
        self.state = self._state()
        self.position = load_progress(self.run, self.state)
        if not setup.fresh:
            setup.source.bad |= self.position.bad
            setup.source.known |= set(self.position.known)
        self.kept_at = time.monotonic()

    def _state(self) -> State:
        optimiser = build_optimiser(self.spec, self.body, self.objective.parameters())
        shards = self.objective.shards()
        return State(
            network=self.network,
            shards=shards,
            optimiser=optimiser,
            average=self.average,
            losses=self.objective.memory(),
            scaler=self.scaler,
            ranks=self.setup.ranks,
        )

    def _describer(self) -> nn.Module:
        describer = _Describer(self.network)
        if self.setup.ranks.group is None:
            return describer
        return DistributedDataParallel(describer, process_group=self.setup.ranks.group)

    def fit(self, stop: int) -> None:
        """Train up to epoch `stop`; leave the best epoch's weights, or the averaged last ones."""
        first = self.setup.ranks.first
        log = RunLog(self.run, self.position.epoch, self.spec.tensorboard) if first else None
        while self.position.epoch < stop and not self._over:
            epoch, started = self.position.epoch, time.monotonic()
            self._epoch(epoch, stop)
            line = self._line(epoch, time.monotonic() - started)
            if log:
                log.write(line)
            if self.position.epoch >= stop or self._over or self._due(_SHORT):
                self._keep()
        if log:
            log.close()
        if not self.position.epoch:  # nothing to train, and still to be taken up
            self._keep()
        self._settle()

    @property
    def _over(self) -> bool:
        """Whether the rate has fallen below the least that is worth an epoch."""
        return self.spec.lr * rate(self.spec, self.position.epoch, self.position.losses) < (
            self.spec.min_lr
        )

    def _epoch(self, epoch: int, stop: int) -> None:
        """Train from the position to the end of its epoch."""
        at = self.position
        if (at.round, at.step) == (0, 0):
            self.setup.source.agree()
        if self.objective.begin(epoch) and (at.round, at.step) == (0, 0):
            self.objective.restart()
            self.average.restart()
            self.state = self._state()
        self.network.train()
        for round_ in range(at.round, self.objective.rounds):
            steps = self.objective.plan(epoch, round_)
            self._round(epoch, round_, steps, stop)
            at.round, at.step = round_ + 1, 0
        if at.seen == 0:
            raise PlaceError("no photo of this epoch could be read; check the paths of the photos")
        at.losses.append(at.total / at.seen)
        if not math.isfinite(at.losses[-1]):
            raise PlaceError(
                f"the loss became {at.losses[-1]} in epoch {epoch}; lower lr or lr_classifier"
            )
        at.epoch, at.round, at.step, at.total, at.seen = epoch + 1, 0, 0, 0.0, 0
        if self.held is not None:
            self._validate()

    def _round(self, epoch: int, round_: int, steps: list[Step], stop: int) -> None:
        at, rounds = self.position, self.objective.rounds
        seed = (self.spec.seed, epoch, round_)
        numbers = range(at.step, len(steps))
        source = self.setup.source.batches(steps, seed, at.step)
        for number, (step, maps) in zip(numbers, source, strict=True):
            set_rates(
                self.state.optimiser, self.spec, epoch + (round_ + number / len(steps)) / rounds,
                at.losses,
            )  # fmt: skip
            if len(step):
                self._learn(step, maps, number, len(steps), seed)
            at.step = number + 1
            self.show((epoch * rounds + round_) * len(steps) + at.step, stop * rounds * len(steps))
            self._keep_now_and_then(number, len(steps))

    def _learn(
        self, step: Step, maps: Tensor, number: int, count: int, seed: tuple[int, ...]
    ) -> None:
        """One batch: its loss, its gradient, and, at the end of an accumulation, one step."""
        every = self.spec.accumulate
        last = (number + 1) % every == 0 or number + 1 == count
        if number % every == 0:
            self.state.optimiser.zero_grad(set_to_none=True)
        devices = [self.setup.device] if self.setup.device.type == "cuda" else []
        with torch.random.fork_rng(devices), self._shared(last):
            # dropout's dice, the same in a run taken up again
            torch.manual_seed(hash((*seed, number, self.setup.ranks.rank)) & (2**62 - 1))
            loss = self._loss(step, maps)
            self.scaler.scale(loss / every).backward()  # type: ignore[no-untyped-call]
        if last:
            self.scaler.step(self.state.optimiser)
            self.scaler.update()
            self.average.update()
        self.position.total += float(loss.detach()) * len(step)
        self.position.seen += len(step)

    def _shared(self, last: bool) -> AbstractContextManager[object]:
        """Ranks bring their gradients together once an accumulation, at its end."""
        if last or not isinstance(self.describer, DistributedDataParallel):
            return nullcontext()
        return self.describer.no_sync()

    def _loss(self, step: Step, maps: Tensor) -> Tensor:
        objective, ranks = self.objective, self.setup.ranks
        with lower_precision(self.setup.device, self.precision):
            described = self.describer(maps, objective.regions)
        described = described.to(weight_type(self.precision))
        everyone = ranks.gather(described, sharded=objective.sharded)
        labels = carry(torch.from_numpy(step.labels), self.network.anchor)
        return objective(everyone, labels, step)

    def _validate(self) -> None:
        """Measure this epoch on the held-out photos, and keep its weights if it is the best."""
        assert self.held is not None
        at = self.position
        with self.average.applied():
            at.recalls.append(asdict(self.held.recall(self.setup.source)))
            if self.best == len(at.recalls):
                self.objective.finish()
                if self.setup.ranks.first:
                    save_tensors(self.run / _BEST, self.network.state_dict())

    @property
    def best(self) -> int:
        """How many epochs were best on the held-out photos; all of them where nobody asked."""
        found = [one["overall"] for one in self.position.recalls]
        found = [value if math.isfinite(value) else -1.0 for value in found]
        return found.index(max(found)) + 1 if found else self.position.epoch

    @property
    def recall(self) -> Recall | None:
        """What the best epoch reached on the held-out photos."""
        recalls = self.position.recalls
        return Recall(**recalls[self.best - 1]) if recalls else None

    def _settle(self) -> None:
        """The weights to keep: the best epoch's, or the average, or the last."""
        self.setup.source.agree()
        self.setup.ranks.wait()
        if self.held is not None and (self.run / _BEST).exists():
            best = read_tensors(self.run / _BEST)
            self.network.load_state_dict(best.tensors)
        else:
            self.average.keep()
            self.objective.finish()
        self.network.eval()

    def _keep_now_and_then(self, number: int, count: int) -> None:
        """A checkpoint whenever `checkpoint` seconds have passed, never within an accumulation."""
        whole = (number + 1) % self.spec.accumulate == 0 and number + 1 < count
        if whole and self._due(self.spec.checkpoint):
            self._keep()

    def _keep(self) -> None:
        source = self.setup.source
        self.position.bad, self.position.known = dict(source.bad), sorted(source.known)
        save_progress(self.run, self.state, self.position)
        if self.setup.ranks.first:
            self.setup.forget(self.position.epoch, self.position.round)
        self.kept_at = time.monotonic()

    def _due(self, seconds: float) -> bool:
        """Whether so long ago, or `checkpoint` ago, was the last; rank 0's clock is everybody's."""
        due = time.monotonic() - self.kept_at >= min(seconds, self.spec.checkpoint)
        if self.setup.ranks.group is None:
            return due
        flag = torch.tensor([float(due)], device=self.setup.device)
        torch.distributed.broadcast(flag, 0, self.setup.ranks.group)
        return bool(flag.item())

    def _line(self, epoch: int, seconds: float) -> dict[str, Any]:
        at = self.position
        line: dict[str, Any] = {"epoch": epoch, "group": 0, "loss": round(at.losses[-1], 6)}
        line |= {"seconds": round(seconds, 3), "lr": self.state.optimiser.param_groups[0]["lr"]}
        line |= {"sampler": self.spec.sampler, "skipped": len(self.setup.source.bad)}
        line |= self.objective.effect(epoch)
        return line | (Recall(**at.recalls[-1]).as_dict() if at.recalls else {})


class _Describer(nn.Module):
    """The part of the network that ranks share, without the classifiers."""

    def __init__(self, network: PlaceNetwork) -> None:
        super().__init__()
        self.backbone, self.aggregator = network.backbone, network.aggregator
        self.projection = network.projection
        self._whole = [network]  # in a list, so that its classifiers are no part of this

    def forward(self, maps: Tensor, regions: bool = False) -> Tensor:
        network = self._whole[0]
        return describe_regions(network, maps) if regions else network.describe(maps)


def build_objective(setup: Setup) -> Objective:
    """Choose by what the loss takes, how the map is cut, and the sampler."""
    recipe = setup.recipe
    if loss_takes(recipe.loss.name) == "cosines":
        if recipe.places.rule == "focal-grid":
            return FocalObjective(setup)
        levels = recipe.places.rule in ("hierarchy", "intersection")
        return LevelObjective(setup) if levels else SoftmaxObjective(setup)
    kinds = {
        "cliques": CliqueObjective,
        "triplets": TripletObjective,
        "generations": GenerationObjective,
    }
    return kinds.get(recipe.training.sampler, PairObjective)(setup)
