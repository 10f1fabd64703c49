"""What the project itself asked and answered; not part of the package."""
