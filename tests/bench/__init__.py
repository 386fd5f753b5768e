"""The benchmark: whole processes against tshark on the same captures. Not part of the test run."""
