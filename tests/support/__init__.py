"""What tests are made with: hand-made traffic, references to hold results to, and the places of the checkout."""
