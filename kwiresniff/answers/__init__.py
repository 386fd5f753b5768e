"""What analysis found: the nouns that it hands to whoever shows or writes them, by subject.

Ready data without behaviour. Packet references are as in ``kwiresniff.model``. There is nothing to import from here: a
command needs one subject, and making all of these classes takes longer than reading many a capture.
"""
