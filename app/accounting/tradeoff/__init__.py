"""Trade-off curves: what the best attack could do."""
