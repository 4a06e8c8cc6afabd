"""DINOv2, the vision transformer, with the official features at every size.

Tokens keep the patches first and the rest (class token, registers, prompts) after them:
attention does not see order, and a map of patches is then a plain reshape.  Between trunk and
tail they travel as one map, the extra tokens in rows of their own below the patches, so that
the trunk's cache needs to know nothing of tokens:

    (B, D, h + ceil(E/w), w)

    B batch · T tokens · D channels · E class token and registers · h, w patches

CricaVPR's adapters, convolutions on the patch grid beside a frozen block, are here too.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError
from evenplace.networks.backbone import Backbone, BackboneSpec, Features
from evenplace.networks.convolutional import import_timm

FACETS = ("token", "query", "key", "value")
_TRAINED_GRID = 37  # 518 pixels in patches of 14
Grid = tuple[int, int]
_SCALE = 0.2


class Transformer(Backbone):
    """A row of stages over tokens: the embedding, the blocks, the final norm unless cut short."""

    def trunk(self, photos: Tensor) -> Tensor:
        grid = self._grid(photos)
        with torch.no_grad():
            tokens = self.stages[0](self.normalise(photos))  # (B, T, D)
            return _pack(_run(self.stages[1 : self.cut], tokens, grid), grid)

    def features(self, maps: Tensor, prompts: Tensor | None = None) -> Features:
        extra = 1 + self.spec.registers
        tokens, grid = _unpack(maps, extra)
        if prompts is not None:
            tokens = torch.cat([tokens, prompts.expand(tokens.shape[0], -1, -1)], dim=1)
        tokens = _run(self.stages[self.cut :], tokens, grid)
        cells = grid[0] * grid[1]
        patches, beside, after = tokens.tensor_split([cells, cells + extra], dim=1)
        maps = patches.transpose(1, 2).reshape(tokens.shape[0], -1, *grid)  # (B, D, h, w)
        return Features(maps, beside, after if prompts is not None else None)

    def _grid(self, photos: Tensor) -> Grid:
        height, width = photos.shape[-2:]
        patch = self.spec.patch
        if height % patch or width % patch:
            raise SettingError(
                f"{height} x {width} pixels do not divide into patches of {patch}; "
                f"use image_size={max(1, round(width / patch)) * patch}"
            )
        return height // patch, width // patch


class Embedding(nn.Module):
    """Photos → patch tokens at their positions, then the class token and the registers."""

    def __init__(self, spec: BackboneSpec) -> None:
        super().__init__()
        self.registers, self.offset = spec.registers, spec.offset
        self.patch_embed = nn.Conv2d(3, spec.channels, spec.patch, stride=spec.patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, spec.channels))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + _TRAINED_GRID**2, spec.channels))
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        if self.registers:
            self.register_tokens = nn.Parameter(torch.zeros(1, self.registers, spec.channels))

    def forward(self, photos: Tensor) -> Tensor:
        maps = self.patch_embed(photos)
        class_position, patch_positions = self.positions((maps.shape[2], maps.shape[3]))
        patches = maps.flatten(2).transpose(1, 2) + patch_positions.to(maps.dtype)
        extra = [self.cls_token + class_position]
        if self.registers:
            extra.append(self.register_tokens)
        beside = torch.cat(extra, dim=1).to(patches.dtype).expand(patches.shape[0], -1, -1)
        return torch.cat([patches, beside], dim=1)  # (B, T, D)

    def positions(self, grid: Grid) -> tuple[Tensor, Tensor]:
        """The class token's position (1, 1, D), and those of the patches (1, h·w, D).

        The models without registers were trained with an offset of 0.1 in the scale and no
        antialiasing, those with registers with an exact size and antialiasing; the wrong one
        moves every feature.
        """
        first, trained = self.pos_embed[:, :1], self.pos_embed[:, 1:]
        if grid == (_TRAINED_GRID, _TRAINED_GRID):
            return first, trained
        square = trained.float().mT.reshape(1, -1, _TRAINED_GRID, _TRAINED_GRID)
        if self.offset:
            scale = [(side + self.offset) / _TRAINED_GRID for side in grid]
            moved = F.interpolate(square, scale_factor=scale, mode="bicubic")
        else:
            moved = F.interpolate(square, size=grid, mode="bicubic", antialias=True)
        return first, moved.flatten(2).transpose(1, 2)


class Block(nn.Module):
    """Attention and a two-layer network, timm's, each added to its input at a learnt scale."""

    def __init__(self, spec: BackboneSpec) -> None:
        super().__init__()
        dim, parts = spec.channels, import_timm().models.vision_transformer
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = parts.Attention(dim, spec.heads, qkv_bias=True)
        self.ls1 = parts.LayerScale(dim, init_values=1.0)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        # The giant's is gated: two thirds as wide, rounded up to a multiple of eight.
        gated = (int(4 * dim * 2 / 3) + 7) // 8 * 8
        self.mlp = parts.SwiGLUPacked(dim, 2 * gated) if spec.gated else parts.Mlp(dim, 4 * dim)
        self.ls2 = parts.LayerScale(dim, init_values=1.0)
        self.adapter = ConvolutionAdapter(dim) if spec.adapters else None
        if self.adapter is not None:
            self.requires_grad_(False)
            self.adapter.requires_grad_(True)

    def forward(self, tokens: Tensor, grid: Grid) -> Tensor:
        tokens = tokens + self.ls1(self.attn(self.norm1(tokens)))
        inner = self.norm2(tokens)
        update = self.mlp(inner)
        if self.adapter is not None:
            update = update + self.adapter(inner, grid)
        out: Tensor = tokens + self.ls2(update)
        return out


class Facet(nn.Module):
    """One of the three things a block's attention makes of its tokens: AnyLoc's features."""

    def __init__(self, block: Block, name: str) -> None:
        super().__init__()
        self.norm1, self.attn, self.part = block.norm1, block.attn, FACETS.index(name) - 1

    def forward(self, tokens: Tensor, grid: Grid) -> Tensor:
        qkv: Tensor = self.attn.qkv(self.norm1(tokens))
        return qkv.chunk(3, dim=-1)[self.part]


def dinov2_stages(spec: BackboneSpec) -> nn.ModuleList:
    """Embedding and blocks; then the final norm, or the facet of the last block."""
    if spec.facet not in FACETS:
        raise SettingError(f"facet={spec.facet!r} is none of {', '.join(FACETS)}")
    depth = len(spec.widths) - 2
    kept = min(depth, spec.stages - 1)
    stages: list[nn.Module] = [Embedding(spec), *(Block(spec) for _ in range(kept))]
    if spec.facet != "token":
        stages[-1] = Facet(stages[-1], spec.facet)  # type: ignore[arg-type]
    elif spec.stages == depth + 2:
        norm = nn.LayerNorm(spec.channels, eps=1e-6)
        stages.append(norm.requires_grad_(not spec.adapters))
    return nn.ModuleList(stages)


def _run(stages: Iterable[nn.Module], tokens: Tensor, grid: Grid) -> Tensor:
    for stage in stages:
        tokens = stage(tokens) if isinstance(stage, nn.LayerNorm) else stage(tokens, grid)
    return tokens


def _pack(tokens: Tensor, grid: Grid) -> Tensor:
    width = grid[1]
    rows = -(-tokens.shape[1] // width)
    padded = F.pad(tokens, (0, 0, 0, rows * width - tokens.shape[1]))
    return padded.reshape(tokens.shape[0], rows, width, -1).permute(0, 3, 1, 2)  # (B, D, rows, w)


def _unpack(maps: Tensor, extra: int) -> tuple[Tensor, Grid]:
    rows, width = maps.shape[2:]
    grid = (rows - -(-extra // width), width)
    tokens = maps.permute(0, 2, 3, 1).flatten(1, 2)
    return tokens[:, : grid[0] * grid[1] + extra], grid


class ConvolutionAdapter(nn.Module):
    """Half-width features through 1x1, 3x3 and 5x5 convolutions, added to the block's update.

        x ← relu(down x),    out = 0.2 · up(x + [conv1 x ; conv3 x ; conv5 x])

    Tokens that are no patch have no neighbours; for them the convolutions are the identity.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        half = dim // 2
        narrow = half // 16
        self.down, self.up = nn.Linear(dim, half), nn.Linear(half, dim)
        self.branch1 = _Convolution(half, half // 2, 1)
        self.branch3, self.branch5 = (
            nn.Sequential(_Convolution(half, narrow, 1), _Convolution(narrow, half // 4, size))
            for size in (3, 5)
        )

    def forward(self, tokens: Tensor, grid: Grid) -> Tensor:
        inner = F.relu(self.down(tokens))  # (B, T, D/2)
        patches, beside = inner.tensor_split([grid[0] * grid[1]], dim=1)
        maps = patches.transpose(1, 2).reshape(tokens.shape[0], -1, *grid)  # (B, D/2, h, w)
        seen = torch.cat([self.branch1(maps), self.branch3(maps), self.branch5(maps)], dim=1)
        mixed = torch.cat([seen.flatten(2).transpose(1, 2), beside], dim=1)
        out: Tensor = _SCALE * self.up(inner + mixed)
        return out


class _Convolution(nn.Sequential):
    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, padding=size // 2)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3)
        self.act = nn.ReLU()
