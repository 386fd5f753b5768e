"""Causes, a module for each family of trouble; ``CAUSES`` in ``examine`` lists them."""
