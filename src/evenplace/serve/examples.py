"""Examples for the API's documentation; the tests check that they are what the types say."""

from typing import Any

from evenplace.serve.problems import KINDS, Problem
from evenplace.serve.schema import ProblemBody

_SPOT = {"east": 497020.4, "north": 4966412.9, "latitude": 44.8512345, "longitude": 20.9623456}
_PLACE = {"place": 12, "tier": "tail", "photos": 6, "trained": 6, "area": 400.0}

LOCATED: dict[str, Any] = {
    "index": "0f3a9c21",
    "answers": [
        {
            "kind": "answer",
            "abstains": False,
            "reason": "",
            "remedy": "",
            "confidence": 0.94,
            "calibrated": True,
            "doubt": "",
            "position": _SPOT
            | {"zone": 34, "ellipse": {"major": 21.4, "minor": 19.6, "bearing": 75.0}},
            "hits": [
                _SPOT
                | {
                    "photo": "0f3a9c21-17",
                    "similarity": 0.83,
                    "distance": -5.32,
                    "place": 12,
                    "tier": "tail",
                    "heading": 144.0,
                    "inliers": 64,
                }
            ],
            "places": [
                _SPOT | {"place": 12, "posterior": 0.91, "photos": 6, "tier": "tail"},
            ],
            "elapsed_ms": {
                "wait": 1.1,
                "decode": 2.3,
                "describe": 21.0,
                "classify": 0.1,
                "gather": 0.2,
                "rank": 0.3,
                "verify": 24.0,
            },
            "looked": 5,
        },
        {
            "kind": "refused",
            "problem": {
                "type": "urn:evenplace:photo-unreadable",
                "title": "Unprocessable Entity",
                "status": 422,
                "detail": "photo 2 is no picture that can be decoded",
                "remedy": "send a JPEG, PNG or WebP",
            },
        },
    ],
}
PLACES: dict[str, Any] = {"index": "0f3a9c21", "total": 1, "places": [_SPOT | _PLACE]}
PLACE: dict[str, Any] = (
    _SPOT
    | _PLACE
    | {
        "index": "0f3a9c21",
        "outline": [_SPOT, _SPOT, _SPOT, _SPOT],
        "pictures": [
            _SPOT | {"photo": "0f3a9c21-17", "heading": 144.0, "time": "2020-01-01T00:00:00"}
        ],
    }
)
_PHOTO = {"type": "string", "format": "binary", "description": "a JPEG, PNG or WebP"}
UPLOAD: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["photo"],
                "additionalProperties": False,
                "properties": {
                    "photo": {"type": "array", "items": _PHOTO, "minItems": 1, "maxItems": 16}
                },
            }
        },
        **{f"image/{kind}": {"schema": _PHOTO} for kind in ("jpeg", "png", "webp")},
    },
}


def example(value: dict[str, Any]) -> dict[str, Any]:
    """A response with an example."""
    return {"content": {"application/json": {"example": value}}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals a route may answer with, and those every route may: 401 and 421."""
    return {status: _problem(status) for status in (*statuses, 401, 403, 421)}


def _problem(status: int) -> dict[str, Any]:
    kinds = [kind for kind, its in KINDS.items() if its == status]
    shown = Problem(kinds[0], "what was wrong", "what to do about it").body()
    return {
        "model": ProblemBody,
        "description": ", ".join(kinds),
        "content": {
            "application/problem+json": {
                "schema": {"$ref": "#/components/schemas/ProblemBody"},
                "example": shown,
            }
        },
    }
