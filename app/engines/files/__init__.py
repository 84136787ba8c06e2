"""The DuckDB engine: CSV and Parquet files, prepared as immutable versions."""
