"""Every loss as plain loops over Python numbers, to be read beside docs/method.md.

No array, no autograd, nothing shared with src/: a formula mistaken there is not mistaken here.
"""

import math
from collections.abc import Callable, Sequence

Row = Sequence[float]
Rows = Sequence[Row]
Labels = Sequence[int]

LARGEST_SHARE = 1 - 1e-6


def fill(counts: Row) -> list[float]:
    rarest = min(n for n in counts if n > 0)
    return [n if n > 0 else rarest for n in counts]


def shares(counts: Row, all_counts: Row | None = None) -> list[float]:
    total = sum(counts if all_counts is None else all_counts)
    return [n / total for n in fill(counts)]


def class_weights(counts: Row, beta: float, all_counts: Row | None = None) -> list[float]:
    whole = counts if all_counts is None else all_counts
    total = sum((p + 1e-12) ** -beta for p in shares(whole))
    return [len(whole) / total * (p + 1e-12) ** -beta for p in shares(counts, all_counts)]


def logit_offsets(counts: Row, kappa: float, all_counts: Row | None = None) -> list[float]:
    found = []
    for p in shares(counts, all_counts):
        p = min(p, LARGEST_SHARE)
        found.append(-kappa * math.log(p / (1 - p)))
    return found


def minus_log_softmax(logits: Row, y: int) -> float:
    top = max(logits)
    return top + math.log(sum(math.exp(z - top) for z in logits)) - logits[y]


def cosine_losses(
    cosines: Rows,
    labels: Labels,
    scale: float,
    offsets: Row | None = None,
    margin: Callable[[float, int], float] = lambda cosine, y: cosine,
) -> list[float]:
    losses = []
    for row, y in zip(cosines, labels, strict=True):
        logits = []
        for j, cosine in enumerate(row):
            z = scale * (margin(cosine, y) if j == y else cosine)
            logits.append(z - (offsets[j] if offsets else 0.0))
        losses.append(minus_log_softmax(logits, y))
    return losses


def weighted_mean(losses: Row, labels: Labels, weights: Row | None = None) -> float:
    total = 0.0
    for loss, y in zip(losses, labels, strict=True):
        total += loss * (weights[y] if weights else 1.0)
    return total / len(losses)


def turn(cosine: float, margin: float, easy: bool) -> float:
    angle = math.acos(cosine)
    if easy:
        return math.cos(angle + margin) if cosine > 0 else cosine
    if angle <= math.pi - margin:
        return math.cos(angle + margin)
    return cosine - margin * math.sin(margin)


def low_visit_bias(
    cosines: Rows, labels: Labels, counts: Row, beta: float, kappa: float, scale: float, m: float
) -> float:
    losses = cosine_losses(
        cosines, labels, scale, logit_offsets(counts, kappa), lambda cosine, y: cosine - m
    )
    return weighted_mean(losses, labels, class_weights(counts, beta))


def focal(losses: Row, gamma: float) -> list[float]:
    return [(1 - math.exp(-loss)) ** gamma * loss for loss in losses]


def effective_weights(counts: Row, base: float) -> list[float]:
    raw = [(1 - base) / (1 - base**n) for n in fill(counts)]
    return [len(raw) * w / sum(raw) for w in raw]


def label_margins(counts: Row, largest: float) -> list[float]:
    raw = [n**-0.25 for n in fill(counts)]
    return [largest * m / max(raw) for m in raw]


def rarities(counts: Row) -> list[float]:
    photos = fill(counts)
    return [1 / math.log(n / min(photos) + 1) for n in photos]


def hard_weights(difficulty: Row, tau: float) -> list[float]:
    raw = [d**tau for d in difficulty]
    return [len(raw) * w / sum(raw) for w in raw]


def distribution_balanced(
    cosines: Rows,
    labels: Labels,
    counts: Row,
    scale: float,
    lift: float,
    slope: float,
    centre: float,
    tolerance: float,
    kappa: float,
) -> float:
    photos, p = fill(counts), shares(counts)
    total = 0.0
    for row, y in zip(cosines, labels, strict=True):
        for c, cosine in enumerate(row):
            r = lift + 1 / (1 + math.exp(-slope * (photos[y] / photos[c] - centre)))
            z = scale * cosine - kappa * math.log(1 / p[c] - 1) / tolerance
            if c == y:
                total += r * math.log(1 + math.exp(-z))
            else:
                total += r * math.log(1 + math.exp(tolerance * z)) / tolerance
    return total / len(counts) / len(labels)


def cosine(a: Row, b: Row) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def distance(a: Row, b: Row) -> float:
    return math.sqrt(max(2 - 2 * cosine(a, b), 0.0))


def lookup(values: Row | None, y: int, otherwise: float) -> float:
    if values is None:
        return otherwise
    return values[y] if 0 <= y < len(values) else max(values)


def all_pairs(labels: Labels) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    size = range(len(labels))
    positive = [(i, j) for i in size for j in size if i != j and labels[i] == labels[j]]
    negative = [(i, j) for i in size for j in size if labels[i] != labels[j]]
    return positive, negative


def mined_pairs(
    z: Rows, labels: Labels, epsilon: float
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    positive, negative = all_pairs(labels)
    hard_positive, hard_negative = [], []
    for i, j in positive:
        others = [cosine(z[i], z[n]) for a, n in negative if a == i]
        if others and cosine(z[i], z[j]) - epsilon < max(others):
            hard_positive.append((i, j))
    for i, j in negative:
        others = [cosine(z[i], z[p]) for a, p in positive if a == i]
        if others and cosine(z[i], z[j]) + epsilon > min(others):
            hard_negative.append((i, j))
    return hard_positive, hard_negative


def multi_similarity(
    z: Rows,
    labels: Labels,
    pairs: tuple[list[tuple[int, int]], list[tuple[int, int]]],
    gamma_p: float,
    gamma_n: float,
    tau: float,
    weights: Row | None = None,
    offsets: Row | None = None,
) -> float:
    total = 0.0
    for i in range(len(z)):
        pull = push = 0.0
        for a, j in pairs[0]:
            if a == i:
                pull += math.exp(-gamma_p * (cosine(z[i], z[j]) - tau))
        for a, j in pairs[1]:
            if a == i:
                nu = lookup(offsets, labels[j], 0.0)
                push += math.exp(gamma_n * (cosine(z[i], z[j]) - nu - tau))
        both = math.log(1 + pull) / gamma_p + math.log(1 + push) / gamma_n
        total += lookup(weights, labels[i], 1.0) * both
    return total / len(z)


def contrastive(
    z: Rows,
    labels: Labels,
    pos_margin: float,
    neg_margin: float,
    squared: bool,
    weights: Row | None = None,
    offsets: Row | None = None,
) -> float:
    positive, negative = all_pairs(labels)
    near = [(i, distance(z[i], z[j]) - pos_margin) for i, j in positive]
    far = [
        (i, neg_margin - distance(z[i], z[j]) - lookup(offsets, labels[j], 0.0))
        for i, j in negative
    ]
    total = 0.0
    for side in (near, far):
        hinges = [(i, x) for i, x in side if x > 0]
        for i, x in hinges:
            h = x * x / 2 if squared else x
            total += lookup(weights, labels[i], 1.0) * h / len(hinges)
    return total


def all_triplets(labels: Labels) -> list[tuple[int, int, int]]:
    positive, negative = all_pairs(labels)
    return [(a, p, n) for a, p in positive for b, n in negative if a == b]


def hardest_triplets(z: Rows, labels: Labels) -> list[tuple[int, int, int]]:
    found = []
    for a in range(len(labels)):
        own = [t for t in all_triplets(labels) if t[0] == a]
        if own:
            p = max((t[1] for t in own), key=lambda j: distance(z[a], z[j]))
            n = min((t[2] for t in own), key=lambda j: distance(z[a], z[j]))
            found.append((a, p, n))
    return found


def triplet(
    z: Rows,
    labels: Labels,
    triplets: list[tuple[int, int, int]],
    margin: float,
    weights: Row | None = None,
    offsets: Row | None = None,
) -> float:
    hinges = []
    for a, p, n in triplets:
        far = distance(z[a], z[n]) + lookup(offsets, labels[n], 0.0)
        x = distance(z[a], z[p]) - far + margin
        if x > 0:
            hinges.append(lookup(weights, labels[a], 1.0) * x)
    return sum(hinges) / max(len(hinges), 1)


def sare(
    z: Rows,
    labels: Labels,
    temperature: float,
    joint: bool,
    weights: Row | None = None,
    offsets: Row | None = None,
) -> float:
    losses = []
    positive, negative = all_pairs(labels)
    for a, p in positive:
        likelihoods = []
        for b, n in negative:
            if a == b:
                s = cosine(z[a], z[n]) - lookup(offsets, labels[n], 0.0)
                likelihoods.append(math.exp((s - cosine(z[a], z[p])) / temperature))
        w = lookup(weights, labels[a], 1.0)
        if joint and likelihoods:
            losses.append(w * math.log(1 + sum(likelihoods)))
        elif not joint:
            losses += [w * math.log(1 + x) for x in likelihoods]
    return sum(losses) / max(len(losses), 1)


def similarity_coherence(z: Rows, labels: Labels, place: int) -> float:
    rows = [i for i, y in enumerate(labels) if y == place]
    found = [cosine(z[i], z[k]) for i in rows for k in rows if i != k]
    return sum(found) / len(found)


def amplitude_coherence(z: Rows, labels: Labels, place: int, frequencies: Rows) -> float:
    """Mean over frequencies and pairs of Re e^{i t (z_i - z_k)}, then its root."""
    rows = [i for i, y in enumerate(labels) if y == place]
    found = []
    for t in frequencies:
        for i in rows:
            for k in rows:
                if i != k:
                    angle = sum(f * (x - y) for f, x, y in zip(t, z[i], z[k], strict=True))
                    found.append(math.cos(angle))
    return math.sqrt(max(sum(found) / len(found), 0.0))
