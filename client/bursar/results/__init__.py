"""Replies of the server: answers, previews, budgets and lists, as tables and pictures."""
