"""One function for each way of measuring a row; rows name it as ``module.function``."""
