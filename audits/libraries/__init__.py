"""What libraries of differential privacy offer, run and attacked."""
