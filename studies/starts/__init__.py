"""The study of starts: does the paper's scale win? Page: docs/does_it_win.md."""
