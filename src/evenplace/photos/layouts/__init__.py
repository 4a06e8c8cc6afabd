"""One module per way of laying photos out on disk; each knows its own layout and no other.

A layout module has two functions: `recognises(path)` looks at a folder or file and says whether
it is laid out this way, `read(path, …)` reads it.  `photos/read.py` holds the list.
"""
