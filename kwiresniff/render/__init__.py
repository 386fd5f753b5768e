"""What people see in a terminal: trees, one-line summaries, tables, problems.

Everything here gets ready data (exchanges, annotated messages, rows of numbers) and a stream to write to. Nothing from
the wire reaches the stream unescaped, and nothing is said by colour alone.
"""
