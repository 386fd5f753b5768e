"""Observers, a module for each family of what can be seen; ``OBSERVERS`` in ``examine`` lists them."""
