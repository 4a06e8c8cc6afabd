"""schemathesis reads the OpenAPI description and tries to make the service break it."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

schemathesis = pytest.importorskip("schemathesis")
checks = pytest.importorskip("schemathesis.specs.openapi.checks")
ROUTES = 8


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_every_route_keeps_to_its_description(address: str) -> None:
    description = schemathesis.openapi.from_url(f"{address}/openapi.json")
    found = [one.ok() for one in description.get_all_operations()]
    assert len(found) == ROUTES
    for operation in found:
        _try(operation, schemathesis.GenerationMode.POSITIVE)
        if list(operation.iter_parameters()):  # else there is nothing to get wrong
            _try(operation, schemathesis.GenerationMode.NEGATIVE)


def _try(operation: Any, mode: Any) -> None:
    """Forty cases that fit the description, or forty that do not.

    No description says which bytes are a photo, so /locate may refuse bytes that fit it.
    """
    excluded = [checks.positive_data_acceptance] if operation.path == "/locate" else []

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    def keeps(case: Any) -> None:
        case.call_and_validate(excluded_checks=excluded)

    keeps()
