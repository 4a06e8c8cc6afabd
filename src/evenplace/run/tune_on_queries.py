"""Calibrating a run on photos whose place is known: the rehearsal that resembles tomorrow most.

The queries ask the run's own index as anybody's would; nothing of the score is learned from them.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.compute as pc

from evenplace.errors import PhotoError, SettingError
from evenplace.photos.choose import canonical
from evenplace.photos.table import Photos
from evenplace.retrieval import Index, open_index
from evenplace.retrieval.descriptor_files import given_rows
from evenplace.retrieval.rerank import Fused, build_reranker
from evenplace.run.fold_answers import draw_queries
from evenplace.run.folds import Fold
from evenplace.run.point_cache import indexed_points
from evenplace.run.run_folder import RunFolder
from evenplace.run.search_settings import LearnedLook, learned_look
from evenplace.run.tune import LOOK, Tuned, rehearse_folds
from evenplace.run.tune_second_look import LookTuner
from evenplace.training.loop import Announce


def rehearse_labelled(
    run: RunFolder, queries: Photos, descriptors: Any = None, announce: Announce | None = None
) -> Tuned:
    """Ask the run's index with photos whose place is known, and keep the answers.

    descriptors: of the queries, (Q, D), where others computed them; nothing is looked at twice
    then, and what was learned of the second look stays.
    """
    recipe, looks = run.recipe, descriptors is None
    if recipe.search.describer:
        raise SettingError(
            f"{recipe.name} ranks by {recipe.search.describer}, whose confidence nothing here "
            "calibrates; it is for runs of one network, or of descriptors"
        )
    index, dice = open_index(run / "index"), np.random.default_rng(0)
    if descriptors is None:
        _refuse_known(index, queries)
        show = announce("describing the queries") if announce else None
        described = run.open_describer(expected=len(queries)).describe(queries.paths, progress=show)
        queries, descriptors = queries[described.rows], described.descriptors
    descriptors = np.asarray(given_rows(descriptors, len(queries))[:], np.float32)
    if not len(queries):
        raise PhotoError("none of the queries could be read, so nothing calibrates; name others")
    learned = (run / "fused.json").exists() and recipe.search.rerank == "fused"
    fused = Fused.read(run / "fused.json") if learned else None
    if fused is None and recipe.search.rerank == "fused" and recipe.search.without:
        fused = Fused().without(recipe.search.without)  # what the run answers by
    look = learned_look(run)
    fold = Fold(index, queries, descriptors, np.arange(len(queries)))
    tuned = rehearse_folds([fold], recipe.search, fused, dice)
    if look is not None and recipe.search.verify and looks:
        look = _look_again(run, look, fold, fused, dice, announce)
    return replace(tuned, look=look)


def _refuse_known(index: Index, queries: Photos) -> None:
    """A photo of the database finds itself, which says nothing of tomorrow's."""
    ours = canonical(index.photos.table.column("path"))
    known = int(pc.sum(pc.is_in(canonical(queries.table.column("path")), ours)).as_py() or 0)
    if known:
        raise PhotoError(
            f"{known} of the {len(queries)} queries are photos of the database, which find "
            "themselves; name photos that it does not hold, best of another day"
        )


def _look_again(
    run: RunFolder,
    look: LearnedLook,
    fold: Fold,
    fused: Fused | None,
    dice: np.random.Generator,
    announce: Announce | None,
) -> LearnedLook:
    """The run's second look, rehearsed by the queries."""
    spec = run.recipe.search
    rule, known = fused or build_reranker(spec.rerank), indexed_points(fold.index, spec.features)
    drawn = [draw_queries(fold, LOOK, dice)]
    with TemporaryDirectory() as folder:
        tuner = LookTuner(spec, Path(folder), known, announce)
        return tuner.rehearse(look, [fold], rule, drawn)
