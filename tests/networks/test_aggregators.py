"""Aggregators: against loops, and the promises each makes about batch, order and length."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evenplace.errors import SettingError
from evenplace.networks.aggregators import AGGREGATORS, SALAD, VLAD, GeM, ImAge, NetVLAD, Request
from evenplace.networks.aggregators.gem import generalised_mean
from evenplace.networks.aggregators.salad import transport
from evenplace.networks.aggregators.vlad import kmeans, sharpness, unit_residuals
from evenplace.networks.backbone import Features
from tests import oracle_models as oracle
from tests.networks.small import pick, random_features, small_aggregators

seeds = st.integers(0, 10_000)
SMALL = small_aggregators()
NOT_UNIT = ("cosplace", "mean")  # a projection follows these, and then the unit norm
UNLEARNT = ("mean", "vlad", "image")  # ImAge's tokens learn inside the backbone
ORDERLESS = ("gem", "cosplace", "mean", "netvlad", "vlad", "salad")


@given(st.lists(st.floats(-1, 4), min_size=1, max_size=6), st.floats(0.5, 8))
def test_generalised_mean_is_the_loops(cells: list[float], power: float) -> None:
    maps = torch.tensor(cells, dtype=torch.float64).view(1, 1, 1, -1)
    found = float(generalised_mean(maps, power))
    assert found == pytest.approx(oracle.generalised_mean(cells, power), rel=1e-6)


def test_power_one_is_the_average_and_a_large_power_the_maximum() -> None:
    maps = torch.tensor([[[[0.5, 1.0], [1.5, 2.0]]]])
    assert float(generalised_mean(maps, 1.0)) == pytest.approx(1.25)
    assert float(generalised_mean(maps, 60.0)) == pytest.approx(2.0, rel=0.03)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_netvlad_is_the_loops(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    layer = NetVLAD(3, clusters=2).double()
    with torch.no_grad():
        found = layer(Features(x.T.reshape(1, 3, 5, 1)))[0]
        wanted = oracle.netvlad(x.tolist(), layer.score.weight.tolist(), layer.centres.tolist())
    assert found.tolist() == pytest.approx(wanted, abs=1e-9)


def test_netvlad_of_a_feature_on_its_centre_is_no_residual() -> None:
    x = torch.tensor([[[1.0, 0.0]]])
    sure = torch.tensor([[[50.0, -50.0]]])
    residuals = unit_residuals(x, sure.softmax(dim=2), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    assert residuals.abs().max() < 1e-6


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_vlad_is_the_loops(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    layer = VLAD(3, clusters=2).double()
    found = layer(Features(x.T.reshape(1, 3, 6, 1)))[0]
    wanted = oracle.vlad(x.tolist(), layer.centres.tolist())
    assert found.tolist() == pytest.approx(wanted, abs=1e-9)


@given(seeds, st.integers(1, 3), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_transport_is_sinkhorn_in_loops(seed: int, clusters: int, rounds: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(1, clusters, clusters + 3, generator=generator)
    found = transport(scores, torch.tensor(0.7), rounds)[0]
    wanted = oracle.transport(scores[0].tolist(), 0.7, rounds)
    assert found.tolist() == [pytest.approx(row, rel=1e-4) for row in wanted]


def test_every_cluster_receives_one_patch_when_transport_has_settled() -> None:
    scores = torch.randn(2, 5, 30, generator=torch.Generator().manual_seed(0))
    shares = transport(scores, torch.tensor(1.0), rounds=200)
    assert torch.allclose(shares.sum(dim=2), torch.ones(2, 5), atol=1e-4)
    assert (shares.sum(dim=1) <= 1 + 1e-5).all()


def test_salad_refuses_photos_with_too_few_patches() -> None:
    few = Features(torch.randn(1, 32, 8, 8), torch.randn(1, 1, 32))
    with pytest.raises(SettingError, match=r"64 patches cannot fill 64 clusters.*9 patches a side"):
        SALAD(32)(few)


def test_salad_refuses_a_backbone_without_class_token() -> None:
    with pytest.raises(SettingError, match="use a dinov2 backbone"):
        SMALL["salad"](Features(torch.randn(1, 32, 12, 12)))


def test_mixvpr_refuses_another_size() -> None:
    with pytest.raises(SettingError, match="built for 144 cells and got 100"):
        SMALL["mixvpr"](Features(torch.randn(1, 32, 10, 10)))


def test_cricavpr_refuses_a_map_it_cannot_cut() -> None:
    with pytest.raises(SettingError, match="use image_size=224"):
        SMALL["cricavpr"](Features(torch.randn(1, 32, 9, 9), torch.randn(1, 1, 32)))


@pytest.mark.parametrize("name", [name for name in SMALL if name != "cricavpr"])
@given(seeds)
@settings(max_examples=8, deadline=None)
@torch.no_grad()
def test_a_descriptor_does_not_depend_on_its_batch(name: str, seed: int) -> None:
    features, aggregator = random_features(seed), SMALL[name]
    together = aggregator(features)
    alone = torch.cat([aggregator(pick(features, [row])) for row in range(3)])
    assert torch.allclose(together, alone, atol=1e-5)


@given(seeds)
@settings(max_examples=8, deadline=None)
@torch.no_grad()
def test_cricavpr_depends_on_its_batch_but_not_on_the_order_in_it(seed: int) -> None:
    features, aggregator = random_features(seed), SMALL["cricavpr"]
    assert aggregator.batch == 16
    together = aggregator(features)
    assert (together[0] - aggregator(pick(features, [0]))[0]).abs().max() > 1e-4
    assert torch.allclose(together[[2, 0, 1]], aggregator(pick(features, [2, 0, 1])), atol=1e-5)


@pytest.mark.parametrize("name", ORDERLESS)
@given(seeds)
@settings(max_examples=8, deadline=None)
@torch.no_grad()
def test_patches_may_come_in_any_order(name: str, seed: int) -> None:
    features, aggregator = random_features(seed), SMALL[name]
    order = torch.randperm(144, generator=torch.Generator().manual_seed(seed))
    shuffled = features.maps.flatten(2)[:, :, order].view_as(features.maps)
    moved = aggregator(Features(shuffled, features.tokens, features.prompts))
    assert torch.allclose(aggregator(features), moved, atol=1e-5)


@pytest.mark.parametrize("name", ["mixvpr", "boq", "cricavpr"])
@torch.no_grad()
def test_the_others_see_where_a_patch_is(name: str) -> None:
    features, aggregator = random_features(1), SMALL[name]
    flipped = Features(features.maps.flip(3), features.tokens, features.prompts)
    assert (aggregator(features) - aggregator(flipped)).abs().max() > 1e-3


@pytest.mark.parametrize("name", [name for name in SMALL if name not in NOT_UNIT])
@given(seeds)
@settings(max_examples=8, deadline=None)
@torch.no_grad()
def test_descriptors_have_unit_length(name: str, seed: int) -> None:
    out = SMALL[name](random_features(seed))
    assert out.shape == (3, SMALL[name].dim)
    assert torch.allclose(out.norm(dim=1), torch.ones(3), atol=1e-5)


@pytest.mark.parametrize("name", list(SMALL))
@torch.no_grad()
def test_half_precision_gives_nearly_the_same_descriptor(name: str) -> None:
    features = random_features(3)
    whole = SMALL[name](features)
    aggregator = small_aggregators()[name].bfloat16()
    half = aggregator(random_features(3, dtype=torch.bfloat16)).float()
    cosines = torch.cosine_similarity(whole, half, dim=1)
    assert torch.isfinite(half).all()
    # VLAD's hard assignment may move a patch that lies between two centres.
    assert (cosines > (0.98 if name == "vlad" else 0.995)).all()


@pytest.mark.parametrize("name", [name for name in SMALL if name not in UNLEARNT])
def test_gradients_reach_every_parameter(name: str) -> None:
    aggregator = small_aggregators()[name].train()
    out: Tensor = aggregator(random_features(4))
    out.square().mul(torch.arange(out.shape[1])).sum().backward()  # type: ignore[no-untyped-call]
    for key, parameter in aggregator.named_parameters():
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all(), key
        assert parameter.grad.abs().max() > 0 or key.endswith("in_proj_bias"), key


def test_kmeans_finds_three_heaps() -> None:
    generator = torch.Generator().manual_seed(0)
    heaps = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = heaps.repeat(20, 1) + 0.1 * torch.randn(60, 2, generator=generator)
    centres = kmeans(points, 3, seed=1)
    nearest = torch.cdist(heaps, centres).min(dim=1).values
    assert (nearest < 0.1).all()


def test_kmeans_refuses_fewer_points_than_clusters() -> None:
    with pytest.raises(SettingError, match="2 local features make no 3 clusters"):
        kmeans(torch.zeros(2, 4), 3)


def test_sharpness_gives_the_second_cluster_a_hundredth() -> None:
    points = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    alpha = sharpness(points, points)
    shares = torch.softmax(alpha * (points @ points.T), dim=1)
    assert float(shares[0, 1] / shares[0, 0]) == pytest.approx(0.01, rel=1e-4)


@pytest.mark.parametrize("name", ["netvlad", "vlad", "image"])
def test_fitting_starts_from_data_and_repeats_itself(name: str) -> None:
    points = torch.randn(200, 32, generator=torch.Generator().manual_seed(0))
    first, second = small_aggregators()[name], small_aggregators()[name]
    before = {key: value.clone() for key, value in first.state_dict().items()}
    first.fit(points, seed=5)
    second.fit(points, seed=5)
    for key, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[key])
        assert not torch.equal(value, before[key])


@pytest.mark.parametrize(
    ("name", "dim"),
    [
        ("salad", 8448),
        ("salad", 2112),
        ("salad", 544),
        ("boq", 12288),
        ("boq", 8192),
        ("boq", 16384),
        ("mixvpr", 4096),
        ("mixvpr", 512),
        ("mixvpr", 128),
        ("megaloc", 8448),
    ],
)
def test_published_lengths_are_built_as_published(name: str, dim: int) -> None:
    with torch.device("meta"):
        aggregator = AGGREGATORS[name].build(Request(768, dim, 400))
    assert aggregator.dim == (16640 if name == "megaloc" else dim)


def test_gem_before_and_after_differ_only_in_where_they_normalise() -> None:
    maps = torch.rand(1, 4, 1, 1)
    before = GeM(4, normalise="before")(Features(maps))
    after = GeM(4)(Features(maps))
    assert torch.allclose(before, after, atol=1e-5)  # one cell: pooling does nothing


@torch.no_grad()
def test_image_without_blocks_to_join_brings_its_own() -> None:
    torch.manual_seed(0)
    image = ImAge(112, depth=2).eval()
    maps = torch.randn(2, 112, 4, 5)
    found = image(Features(maps))
    assert image.prompts() is None
    assert found.shape == (2, 8 * 112)
    moved = image(Features(maps.flip(3)))  # attention does not see the order of cells
    assert torch.allclose(found, moved, atol=1e-5)
    assert not torch.allclose(found, image(Features(maps + torch.randn_like(maps))), atol=1e-2)
    assert not [name for name in ImAge(112).state_dict() if name.startswith("blocks")]
