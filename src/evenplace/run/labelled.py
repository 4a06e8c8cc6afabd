"""Calibrating a run on photos whose place is known: the rehearsal that resembles tomorrow most.

The queries ask the run's own index as anybody's would; nothing of the score is learned from them.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from evenplace.errors import PhotoError, SettingError
from evenplace.photos.table import Photos
from evenplace.retrieval import open_index
from evenplace.retrieval.rerank import Fused
from evenplace.run.folds import Fold
from evenplace.run.learned_look import LearnedLook
from evenplace.run.run_folder import RunFolder
from evenplace.run.tune import Tuned, rehearse_folds
from evenplace.training.loop import Announce


def rehearse_labelled(
    run: RunFolder, queries: Photos, descriptors: Any = None, announce: Announce | None = None
) -> Tuned:
    """Ask the run's index with photos whose place is known, and keep the answers.

    descriptors: of the queries, (Q, D), where others computed them.
    """
    recipe = run.recipe
    if recipe.search.describer:
        raise SettingError(
            f"{recipe.name} ranks by {recipe.search.describer}, whose confidence nothing here "
            "calibrates; it is for runs of one network, or of descriptors"
        )
    if descriptors is None:
        show = announce("describing the queries") if announce else None
        described = run.open_describer(expected=len(queries)).describe(queries.paths, progress=show)
        queries, descriptors = queries[described.rows], described.descriptors
    if not len(queries):
        raise PhotoError("none of the queries could be read, so nothing calibrates; name others")
    learned = (run / "fused.json").exists() and recipe.search.rerank == "fused"
    fused = Fused.read(run / "fused.json") if learned else None
    if fused is None and recipe.search.rerank == "fused" and recipe.search.without:
        fused = Fused().without(recipe.search.without)  # what the run answers by
    look = LearnedLook.read(run / "look.json") if (run / "look.json").exists() else None
    fold = Fold(open_index(run / "index"), queries, descriptors, np.arange(len(queries)))
    tuned = rehearse_folds([fold], recipe.search, fused, np.random.default_rng(0))
    return replace(tuned, look=look)
