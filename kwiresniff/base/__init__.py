"""What all rooms share and what knows nothing of them: numbers, words and fast ways to write and read both."""
