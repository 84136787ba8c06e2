"""Shared by all routes: requests, replies, problems and the interface description."""
