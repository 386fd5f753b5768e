"""Results into files: JSON Lines, JSON, CSV and Parquet, plain or compressed."""
