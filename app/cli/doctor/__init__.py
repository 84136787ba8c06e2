"""`bursard doctor`: one file for each sort of check."""
