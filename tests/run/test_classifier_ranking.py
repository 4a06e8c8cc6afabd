"""Places in the order their authors give them, through a run's own index, against plain loops."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from evenplace.networks.checkpoints import load_checkpoint, save_checkpoint
from evenplace.networks.classifiers import GroupClassifiers, LevelClassifiers
from evenplace.networks.network import PlaceNetwork
from evenplace.photos import read_photos
from evenplace.retrieval import Index, Search
from evenplace.retrieval.update import add_photos
from evenplace.run.run import Run
from evenplace.training.recipe import read_recipe
from tests.drawn import draw_split, photos_at, unit

QUICK = ["epochs=1", "image_size=32", "dim=16", "batch=16", "min_photos=1"]
Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("town"), database=60, queries=4)


def drawn_run(name: str, town: Path, run: Path, *settings: str) -> tuple[PlaceNetwork, Index]:
    """A run whose classes have prototypes of very different lengths."""
    photos = read_photos(town / "database")
    Run(run).train(photos, recipe=read_recipe(name).changed([*QUICK, *settings]))
    kept = load_checkpoint(run / "model.safetensors")
    dice = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for one in kept.network.classifiers.prototypes:
            one.copy_(torch.randn(one.shape, generator=dice))
            one.mul_(torch.rand(len(one), 1, generator=dice) * 3 + 0.2)
    save_checkpoint(run / "model.safetensors", kept.network, kept.recipe, kept.places)
    return kept.network, Run(run).index(photos)


def agree(engine: Search, queries: Floats, scores: list[list[float]]) -> None:
    """The engine's order of places is that of the scores, and its posterior their share."""
    held = np.flatnonzero(engine.index.sizes)
    found = engine.places.find(queries)
    for query, own in enumerate(scores):
        wanted = sorted(held, key=lambda place: -own[place])[: found.places.shape[1]]
        assert found.places[query].tolist() == wanted


def test_divide_and_classify_ranks_by_raw_prototypes(town: Path, tmp_path: Path) -> None:
    network, index = drawn_run("dc-small", town, tmp_path / "run")
    queries = unit(20, 16, 3)
    assert isinstance(network.classifiers, GroupClassifiers)
    place_of = np.concatenate([rows.numpy() for rows in network.classifiers.members])
    raw = [row.tolist() for one in network.classifiers.prototypes for row in one]
    scores = [[0.0] * len(raw) for _ in queries]
    for q, query in enumerate(queries.tolist()):
        for place, prototype in zip(place_of, raw, strict=True):
            scores[q][place] = sum(a * b for a, b in zip(query, prototype, strict=True))
    engine = Run(tmp_path / "run").search()
    agree(engine, queries, scores)
    lengths = np.linalg.norm(index.prototypes, axis=1)
    cosine = [np.array(own) / lengths for own in scores]
    changed = [np.argmax(a) != np.argmax(b) for a, b in zip(scores, cosine, strict=True)]
    assert np.mean(changed) > 0.3  # so cosines would not do


def sums(levels: LevelClassifiers, query: list[float], scale: float) -> list[float]:
    """Σ_l softmax_l[parent], as CPlaNet writes it."""
    chances = []
    for one in levels.prototypes:
        logits = []
        for row in one.tolist():
            length = math.sqrt(sum(value * value for value in row))
            logits.append(scale * sum(a * b for a, b in zip(query, row, strict=True)) / length)
        total = sum(math.exp(value) for value in logits)
        chances.append([math.exp(value) / total for value in logits])
    columns = levels.parents.T.tolist()
    return [sum(chances[level][of] for level, of in enumerate(own)) for own in columns]


def test_cplanet_ranks_by_the_sum_over_partitions(town: Path, tmp_path: Path) -> None:
    settings = ("places.max_photos=10", "places.cell=40", "search.shortlist=5")
    network, index = drawn_run("cplanet-small", town, tmp_path / "run", *settings)
    levels = network.classifiers
    assert isinstance(levels, LevelClassifiers)
    assert levels.combine == "sum"
    queries = unit(20, 16, 3)
    scores = [sums(levels, query, network.scale) for query in queries.tolist()]
    engine = Run(tmp_path / "run").search()
    agree(engine, queries, scores)
    posterior = engine.search(queries, 1).posterior
    for query, own in enumerate(scores):
        best = sorted((own[place] for place in np.flatnonzero(index.sizes)), reverse=True)
        wanted = np.array(best) / sum(best)
        np.testing.assert_allclose(posterior[query], wanted[:5], rtol=1e-4)  # float32 exponents
    product = np.argmax(queries @ levels.joint().detach().numpy().T, axis=1)
    assert np.mean(product != np.argmax(scores, axis=1)) > 0.2  # so one matrix would not do


def test_a_place_opened_since_is_found_beside_the_sums(town: Path, tmp_path: Path) -> None:
    settings = ("places.max_photos=10", "places.cell=40", "search.shortlist=5")
    network, index = drawn_run("cplanet-small", town, tmp_path / "run", *settings)
    new = unit(1, 16, 9)
    before = Run(tmp_path / "run").search().places.find(unit(5, 16, 3))
    far = photos_at(np.array([[5000.0, 5000.0]]))
    grown = add_photos(tmp_path / "run" / "index", new, far, model=index.model)
    engine = Run(tmp_path / "run").search()
    assert len(grown.places) == len(index.places) + 1
    opened = int(grown.labels[np.flatnonzero(grown.positions[:, 0] == far.east[0])[0]])
    assert engine.places.find(new).places[0, 0] == opened
    after = engine.places.find(unit(5, 16, 3))
    centres = [one.places.centres for one in (index, grown)]
    kept = np.isin(after.places, opened, invert=True)
    assert np.array_equal(centres[0][before.places][:, 0][kept[:, 0]],
                          centres[1][after.places][:, 0][kept[:, 0]])  # fmt: skip
    assert network.place_count == len(index.places)
