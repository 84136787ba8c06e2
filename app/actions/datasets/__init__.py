"""Datasets: propose, register, append, refresh, withdraw."""
