"""`bursard backup` and `bursard restore`."""
