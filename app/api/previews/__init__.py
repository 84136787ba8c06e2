"""Previews: what a question would cost and how far off it would be."""
