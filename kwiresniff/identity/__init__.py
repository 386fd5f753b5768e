"""Who is who: which connections are views of one stream, and which brokers are of one cluster."""
