"""Two captures compared: what changed, and what may be chance."""
