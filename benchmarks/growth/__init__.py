"""Growth: which cost grows with which parameter, and by which exponent."""
