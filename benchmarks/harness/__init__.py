"""Shared parts of the benchmarks: servers, load, tables and charts."""
