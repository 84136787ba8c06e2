"""Propose-test-release: test privately whether a bound is safe, then release or withhold."""
