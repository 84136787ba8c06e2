"""What actions need from outside, as protocols."""
