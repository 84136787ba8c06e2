"""Actions of the service, one verb for each file; branching is here, and leaves stay pure."""
