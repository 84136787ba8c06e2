"""Trade-off curves: the error rates of the best attack."""
