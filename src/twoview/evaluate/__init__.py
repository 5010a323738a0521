"""From held-out cases to numbers that can be trusted; knows Recommender and never a model."""
