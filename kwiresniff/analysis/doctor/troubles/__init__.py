"""Troubles, a module for each: what is seen of it, and what may explain that; ``examine`` finds them here."""
