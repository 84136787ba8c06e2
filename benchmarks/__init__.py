"""Speed, as ratios against a ceiling measured in the same run."""
