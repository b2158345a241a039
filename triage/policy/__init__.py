"""From an answer to a label: confidence, floors, vetoes. Pure."""
