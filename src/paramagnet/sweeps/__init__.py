"""Sweeps: experiments of many runs, anybody's; specification in, records and tables out."""
