"""Keys that are not public: which may be released, and their counts."""
