"""What every route shares: requests, replies, problems and the interface description."""
