"""Accounts over time and beside each reply: history, and the headers with the balance."""
