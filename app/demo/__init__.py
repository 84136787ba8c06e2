"""Data to try the service with: a real health study and a synthetic census."""
