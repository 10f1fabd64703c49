"""The paper [Y25] reproduced: its numbers, its plan, how far ours agree. Only the command line imports it."""
