"""Local privacy: every row is randomised independently."""
