"""Parts with parameters that know tensors, not recommenders."""
