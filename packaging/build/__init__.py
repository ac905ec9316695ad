"""Builds packages. Each module answers one question: facts (what is packaged), tree (files and their owners), payload
(which files), then one module for each kind of package."""
