"""What the benchmarks share: servers, load, tables and drawings."""
