"""When a query runs and when its reply leaves, by public times and fair turns."""
