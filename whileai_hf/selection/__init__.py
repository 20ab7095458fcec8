"""What to train on: gates, pairs and a curriculum, each a `map` or a `filter` over a dataset."""
