"""Sample and aggregate: statistics of blocks of rows."""
