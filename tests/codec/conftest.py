"""Property tests here have no deadline: the first example of each also compiles a decoder."""

from hypothesis import settings

settings.register_profile("codec", deadline=None)
settings.load_profile("codec")
