"""Engines that query a remote database: PostgreSQL and Spark."""
