"""A test of a foreign run, put together again from the run's log: enough of it to be scored."""

from __future__ import annotations

from typing import Any

from app.dataset_interfaces.examples import TestExample
from app.dataset_interfaces.loading import create_dataset, shipped_dataset
from app.dataset_interfaces.master_log import EventType, MasterLog


def recorded_test(test_id: str, dataset_name: str, log: MasterLog, expected_responses: Any) -> TestExample | None:
    """The test with the script that was said; None where no shipped dataset has its name."""
    found = shipped_dataset(dataset_name)
    if found is None:
        return None
    events = list(log.of(test_id))
    said = [event for event in events if event.type is EventType.SEND_MESSAGE]
    dataset = create_dataset(found)
    dataset.name = dataset_name
    example = dataset.create_example(
        script=[str(event.data["message"]) for event in said],
        is_question=[bool(event.data.get("is_question")) for event in said],
        waits=[{} for _ in said],
        expected_responses=expected_responses,
        uses_callback=any(event.type is EventType.REGISTER_CALLBACK for event in events),
    )
    example.identify(dataset, test_id.removeprefix(f"{dataset_name} - "))
    return example
