"""An account as it was after each entry of its book, forwards and backwards."""
