"""The memory architectures under test. Nothing here knows of the replayer."""
