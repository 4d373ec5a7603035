"""What is drawn, whoever draws it: curves, points and labels."""
