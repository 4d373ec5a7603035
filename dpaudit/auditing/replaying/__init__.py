"""Running code again on a neighbour, with the noise that was drawn before."""
