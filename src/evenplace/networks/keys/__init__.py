"""The names that published weights give to tensors, and ours for the same tensors."""
