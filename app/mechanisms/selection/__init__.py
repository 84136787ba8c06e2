"""Selection mechanisms: choose one public outcome by its score."""
