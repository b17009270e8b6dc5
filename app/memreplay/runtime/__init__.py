"""From settings to what a run needs: its models, its memories with their stores and embedders, its recording."""
