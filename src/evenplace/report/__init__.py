"""Scores and places to pages people look at; reads files and numbers, never a model."""
