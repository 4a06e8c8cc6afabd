"""Timings on a shared machine vary; what is tested here are values."""

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
