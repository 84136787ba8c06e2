"""Before a request's route: sockets, the client's address, and a server about to stop."""
