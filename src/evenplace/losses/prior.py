"""How often each place was photographed, as weights and offsets of a loss (Eq. 2-3).

A place without photos stands in as the rarest photographed one: its share would be 0, its
offset infinite, and one such place would take all the weight.  Knows nothing of softmaxes or
pairs; those multiply by the weights and subtract the offsets.
"""

# C places · w weights · ν offsets · p share of the photos

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from evenplace.errors import SettingError, unknown_name

Counts = Tensor | Sequence[int] | Sequence[float]

# A place that holds every photo has p = 1 and an infinite offset.
LARGEST_SHARE = 1 - 1e-6


def class_weights(
    counts: Counts, beta: float = 0.01, *, all_counts: Counts | None = None, eps: float = 1e-12
) -> Tensor:
    """Weigh each place by how seldom it was photographed (Eq. 2).

        w_c = C (p_c + eps)^-beta / sum_j (p_j + eps)^-beta,    p_c = n_c / N

    The weights average to 1, so beta does not change the scale of the loss;
    beta = 0 is plain training.  counts: (C,) photos per place -> (C,).

    N and the average run over `counts`, the places of one softmax; give `all_counts` (the
    places of all groups) to take both over the whole map: every w_c of a group is then
    multiplied by the same number.
    """
    require_nonnegative("beta", beta)
    tilted = (shares(counts, all_counts) + eps) ** -beta  # (C,)
    whole = tilted if all_counts is None else (shares(all_counts) + eps) ** -beta
    return _like(counts, tilted * (len(whole) / whole.sum()))


def logit_offsets(
    counts: Counts, kappa: float = 0.05, *, all_counts: Counts | None = None
) -> Tensor:
    """Give each place the head start it must do without in training (Eq. 3).

        nu_c = -kappa log(p_c / (1 - p_c)),    p_c = n_c / N

    Losses subtract it: a rare place (large nu) must win by more while training, and wins more
    often once nu is left out at inference.  kappa = 0 is plain training.  A constant added to
    nu cancels in a softmax, not in the pairs of Eq. 7.  counts: (C,) -> (C,).
    """
    require_nonnegative("kappa", kappa)
    p = shares(counts, all_counts).clamp(max=LARGEST_SHARE)  # (C,)
    return _like(counts, -kappa * torch.log(p / (1 - p)))


def shares(counts: Counts, all_counts: Counts | None = None) -> Tensor:
    """Divide photos per place by all photos, in float64; empty places get the rarest share."""
    whole = as_counts(counts if all_counts is None else all_counts)
    return photographed(counts) / whole.sum()  # (C,)


def photographed(counts: Counts) -> Tensor:
    """Give photos per place in float64, with empty places counted as the rarest one, (C,)."""
    photos = as_counts(counts)
    return photos.where(photos > 0, photos[photos > 0].min())


def as_counts(counts: Counts) -> Tensor:
    """Check photos per place: one finite number for each, none negative, not all zero."""
    photos = torch.as_tensor(counts).to(torch.float64)
    if photos.ndim != 1 or not len(photos):
        raise SettingError(
            f"counts has shape {tuple(photos.shape)}; pass one number of photos per place"
        )
    if not bool(torch.isfinite(photos).all()) or bool((photos < 0).any()):
        raise SettingError(
            f"counts runs from {photos.min():g} to {photos.max():g}; pass finite numbers >= 0"
        )
    if not bool(photos.any()):
        raise SettingError(
            f"counts says that none of {len(photos)} places has a photo; pass photos per place"
        )
    return photos


def require_nonnegative(name: str, value: float) -> None:
    """Refuse a negative or undefined strength."""
    if not (math.isfinite(value) and value >= 0):
        raise SettingError(f"{name} is {value}; pass a finite number >= 0 (0 switches it off)")


@dataclass(frozen=True)
class PriorEffect:
    """What weights and offsets amount to, in the units the loss works in.

    `gain` is what an offset is multiplied with before the exponential (1 in a softmax, gamma_n
    in pairs); `cancels` says whether a constant offset has no effect; `margin` is the host's
    margin in logits, for comparison.
    """

    places: int
    rarest: float
    commonest: float
    weights: tuple[float, float]
    offsets: tuple[float, float]
    mean_offset: float
    gain: float
    cancels: bool
    margin: float

    @property
    def weight_ratio(self) -> float:
        """How many times the most weighted place outweighs the least weighted one."""
        return self.weights[1] / self.weights[0] if self.weights[0] else math.inf

    @property
    def logit_spread(self) -> float:
        """The largest difference that offsets make between two places, in logits (nats)."""
        return self.gain * (self.offsets[1] - self.offsets[0])

    @property
    def constant_logit(self) -> float:
        """The mean offset in logits: what all places are moved by alike."""
        return self.gain * self.mean_offset

    def __str__(self) -> str:
        """Say in three or four lines whether the settings do anything."""
        imbalance = self.commonest / self.rarest
        lines = [
            f"{self.places} places, {self.rarest:g} to {self.commonest:g} photos "
            f"({imbalance:.3g}:1)",
            f"weights {self.weights[0]:.4g} to {self.weights[1]:.4g}: "
            f"a ratio of {self.weight_ratio:.3g}",
            f"offsets {self.offsets[0]:.4g} to {self.offsets[1]:.4g}: between two places at most "
            f"{self.logit_spread:.3g} in logits, a factor of {_factor(self.logit_spread)}"
            + (f", beside a margin of {self.margin:.3g}" if self.margin else ""),
            f"their mean moves every logit by {-self.constant_logit:.3g}, "
            + ("which cancels" if self.cancels else "which does not cancel: it is a threshold"),
        ]
        return "\n".join(lines)


class PriorLoss(nn.Module):
    """A loss that may know how often each place was photographed.

    Holds w and nu as buffers that follow the module's device and stay out of its state_dict:
    they are a function of the counts, Eq. 2-3 unless `prior` is another one.  Without counts it
    is the plain host loss.

    A subclass names its `formula`, whose keywords with their defaults are its settings; `own` are
    those that only the module has, and `bias` which of beta, kappa and all_counts it takes.  Each
    setting is an attribute.
    """

    takes: ClassVar[str] = "cosines"
    formula: ClassVar[Callable[..., Tensor]]
    own: ClassVar[dict[str, Any]] = {}
    bias: ClassVar[tuple[str, ...]] = ("beta", "kappa", "all_counts")
    needs_counts: ClassVar[bool] = False
    beta = kappa = 0.0
    weights: Tensor | None
    offsets: Tensor | None
    counts: Tensor | None

    def __init__(self, counts: Counts | None = None, **settings: Any) -> None:
        super().__init__()
        known = self.defaults()
        for name in settings.keys() - known.keys():
            raise unknown_name(f"{type(self).__name__} setting", name, known)
        all_counts: Counts | None = settings.pop("all_counts", None)
        for name, value in (known | settings).items():
            setattr(self, name, value)
        self.settings = {name: getattr(self, name) for name in _keywords(type(self))}
        self.check()
        if counts is None and (self.beta or self.kappa or self.needs_counts):
            strengths = f"beta={self.beta} and kappa={self.kappa}"
            raise SettingError(
                f"{type(self).__name__} with {strengths} needs photos per place; pass counts="
            )
        for name in ("counts", "weights", "offsets"):
            self.register_buffer(name, None, persistent=False)
        if self.takes == "cosines":
            self.register_forward_pre_hook(_check_places, with_kwargs=True)
        if counts is not None:
            self.update_counts(counts, all_counts=all_counts)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Every setting by name: the formula's, the module's own, and those of the prior."""
        prior = {"beta": 0.0, "kappa": 0.0, "all_counts": None}
        return {n: prior[n] for n in cls.bias} | _keywords(cls) | cls.own

    def check(self) -> None:
        """Refuse settings that make no sense; most losses have none."""

    def update_counts(self, counts: Counts, *, all_counts: Counts | None = None) -> None:
        """Take a new prior, as the paper does at each epoch; on the device of the old one."""
        device = torch.device("cpu") if self.counts is None else self.counts.device
        self.counts = as_counts(counts).float().to(device)
        self.weights, self.offsets = (
            found.float().to(device) for found in self.prior(counts, all_counts)
        )

    def prior(self, counts: Counts, all_counts: Counts | None) -> tuple[Tensor, Tensor]:
        """Weights and offsets of these counts, two (C,)."""
        return (
            class_weights(counts, self.beta, all_counts=all_counts),
            logit_offsets(counts, self.kappa, all_counts=all_counts),
        )

    def update_weights(self, weights: Tensor) -> None:
        """Weigh places by something else until the next `update_counts`.

        For `coherence_weights`, alone or times `loss.weights`.
        """
        if self.counts is not None and len(weights) != len(self.counts):
            raise SettingError(
                f"{len(weights)} weights for {len(self.counts)} places; pass one for each"
            )
        device = weights.device if self.counts is None else self.counts.device
        self.weights = weights.detach().float().to(device)

    def compute(self, *batch: Any, **named: Any) -> Tensor:
        """The formula of this batch, with the settings, under the prior there is."""
        return type(self).formula(*batch, **self.given(), **self.settings, **named)

    def given(self) -> dict[str, Any]:
        """What the formula is told of the places beside the settings."""
        return {"weights": self.weights, "offsets": self.offsets}

    def set_epoch(self, epoch: int) -> None:
        """Hear that epoch `epoch` (from 0) begins; most losses do not care."""

    def describe(self) -> PriorEffect:
        """Say what the prior amounts to; print it to see whether a setting does anything."""
        if self.counts is None or self.weights is None or self.offsets is None:
            raise SettingError(
                f"{type(self).__name__} has no counts to describe; pass counts= or update_counts"
            )
        seen = self.counts[self.counts > 0]
        return PriorEffect(
            places=len(self.counts),
            rarest=float(seen.min()),
            commonest=float(seen.max()),
            weights=(float(self.weights.min()), float(self.weights.max())),
            offsets=(float(self.offsets.min()), float(self.offsets.max())),
            mean_offset=float(self.offsets.mean()),
            **self.reach(),
        )

    def reach(self) -> dict[str, Any]:
        """Say how offsets enter: `gain`, `cancels`, and the host's `margin` in logits."""
        scale, margin = (self.settings.get(name, 0.0) for name in ("scale", "margin"))
        return {"gain": 1.0, "cancels": True, "margin": scale * margin}


def _keywords(loss: type[PriorLoss]) -> dict[str, Any]:
    """The settings of a loss's formula and their defaults: its keywords, but for a call's."""
    formula = getattr(loss, "formula", None)
    given = inspect.signature(formula).parameters.values() if formula else ()
    named = {p.name: p.default for p in given if p.kind is p.KEYWORD_ONLY}
    return {n: named[n] for n in named if n not in ("weights", "offsets", "columns")}


def _check_places(loss: PriorLoss, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Refuse cosines to other places than were counted: a group's, say, and the whole map's."""
    cosines, columns = named.get("cosines", args[0] if args else None), named.get("columns")
    if columns is not None or len(args) > 2 or cosines is None or loss.counts is None:
        return
    if cosines.shape[-1] != len(loss.counts):
        raise SettingError(
            f"cosines to {cosines.shape[-1]} places but counts of {len(loss.counts)}; "
            "pass the counts of the places of this softmax"
        )


def _like(counts: Counts, found: Tensor) -> Tensor:
    """Return float64 for float64 counts, and float32 for all others."""
    if isinstance(counts, Tensor) and counts.dtype == torch.float64:
        return found
    return found.float()


def _factor(nats: float) -> str:
    return f"{math.exp(nats):.3g}" if nats < 50 else f"e^{nats:.3g}"
