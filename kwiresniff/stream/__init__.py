"""TCP segments to size-delimited frames: order, gaps and resynchronisation, one direction of a connection at a time."""
