"""What the service can do, one verb a file; branching lives here, leaves stay pure."""
