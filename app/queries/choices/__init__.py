"""Questions whose answer is one of several public outcomes."""
