"""Calls to the server: steps, transport, progress, and the last charge seen."""
