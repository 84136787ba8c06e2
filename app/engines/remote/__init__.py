"""Engines that ask a database where the rows are: PostgreSQL and Spark."""
