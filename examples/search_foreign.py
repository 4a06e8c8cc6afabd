"""Anybody's descriptors become a run: prototypes, a learned score, a calibrated confidence.

python examples/search_foreign.py
"""

import tempfile

import numpy as np

import evenplace as ep

rng = np.random.default_rng(0)  # yours: ep.read_photos("database"), np.load("salad.npy")
spots = rng.uniform(0, 400, (500, 2))
looks = np.cos(spots @ rng.normal(0, 0.02, (2, 64)) + rng.uniform(0, 6, 64))
looks = (looks / np.linalg.norm(looks, axis=1, keepdims=True)).astype(np.float32)
names = [f"{number}.jpg" for number in range(500)]
photos = ep.Photos.from_arrays(
    east=500_000 + spots[:, 0], north=4_000_000 + spots[:, 1], zone=34, path=names
)
places = ep.Grid(cell=20).partition(photos)
with tempfile.TemporaryDirectory() as folder:
    run = ep.from_descriptors(looks, photos, places, run=folder)
    answer = run.locate(looks[0], k=5)
print(answer.hits[0].path, answer.position, answer.places[0].tier, f"{answer.confidence:.2f}")
