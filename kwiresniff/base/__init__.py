"""What every room shares and what knows none of them: numbers, names, and fast ways to read and write both."""
