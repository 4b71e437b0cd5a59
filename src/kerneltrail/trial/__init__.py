"""A trial that runs on a fitted model: decisions with known probabilities, and the record to replay them from."""
