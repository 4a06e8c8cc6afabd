"""The models' equations as plain loops, on numbers small enough to check by hand.

N local features · D channels · K clusters · L levels · C places
"""

import math

Vector = list[float]
Matrix = list[Vector]


def unit(v: Vector) -> Vector:
    length = math.sqrt(sum(x * x for x in v))
    return [x / max(length, 1e-12) for x in v]


def generalised_mean(cells: Vector, power: float, eps: float = 1e-6) -> float:
    mean = sum(math.pow(max(x, eps), power) for x in cells) / len(cells)
    return math.pow(mean, 1 / power)


def softmax(v: Vector) -> Vector:
    top = max(v)
    powers = [math.exp(x - top) for x in v]
    return [p / sum(powers) for p in powers]


def dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def netvlad(features: Matrix, scores: Matrix, centres: Matrix) -> Vector:
    """Soft residuals of unit features; each cluster, then the whole, to unit length."""
    clusters = [[0.0] * len(features[0]) for _ in centres]
    for raw in features:
        x = unit(raw)
        shares = softmax([dot(x, w) for w in scores])
        for k, centre in enumerate(centres):
            for d, value in enumerate(x):
                clusters[k][d] += shares[k] * (value - centre[d])
    return unit([x for cluster in clusters for x in unit(cluster)])


def vlad(features: Matrix, centres: Matrix) -> Vector:
    """Residuals to the centre nearest in angle."""
    clusters = [[0.0] * len(features[0]) for _ in centres]
    for raw in features:
        x = unit(raw)
        cosines = [dot(x, unit(c)) for c in centres]
        k = cosines.index(max(cosines))
        for d, value in enumerate(x):
            clusters[k][d] += value - centres[k][d]
    return unit([x for cluster in clusters for x in unit(cluster)])


def transport(scores: Matrix, dustbin: float, rounds: int) -> Matrix:
    """Sinkhorn by dividing rows and columns in turn: K clusters by N patches, then the bin."""
    patches = len(scores[0])
    table = [[math.exp(s) for s in row] for row in scores] + [[math.exp(dustbin)] * patches]
    masses = [1.0] * len(scores) + [float(patches - len(scores))]
    for _ in range(rounds):
        table = [[x * m / sum(row) for x in row] for row, m in zip(table, masses, strict=True)]
        sums = [sum(row[n] for row in table) for n in range(patches)]
        table = [[x / sums[n] for n, x in enumerate(row)] for row in table]
    return table[:-1]


def level_scores(logits: list[Vector], parents: list[list[int]], combine: str) -> Vector:
    """Product or sum over the classes a place lies in, normalised over the places."""
    shares = [softmax(level) for level in logits]
    places = range(len(parents[0]))
    picked = [[shares[level][row[c]] for level, row in enumerate(parents)] for c in places]
    totals = [math.prod(p) if combine == "product" else sum(p) for p in picked]
    return [t / sum(totals) for t in totals]
