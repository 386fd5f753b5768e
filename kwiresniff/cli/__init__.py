"""The command line: one module a command, wiring the rooms together."""
