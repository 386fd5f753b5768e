"""Results of analyses, by subject: plain data for the rooms that show or write them.

Ready data without behaviour. Packet references are as in ``kwiresniff.model``. There is nothing to import from here: a
command needs one subject, and making all of these classes takes longer than reading many a capture.
"""
