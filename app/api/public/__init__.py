"""Routes for everybody, without a key."""
