"""Engine → HTTP: a page for people and an API for programs.

Importing this package loads neither torch nor a web framework; `app.create_app` does.
"""
