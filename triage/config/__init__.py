"""What an operator writes, checked and frozen: YAML and pydantic in, plain values out."""
