"""The study of recipes: which start, gradient, optimizer and learning rate give the best machine."""
